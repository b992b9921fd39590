package httplimit

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"
)

// FuzzPolicy parses any document. A policy that is accepted must work, and the fields of its
// answers must be well-formed.
func FuzzPolicy(f *testing.F) {
	f.Add([]byte(jsonRule("global-rps", `["ip:address"]`, 10, "")))
	f.Add([]byte(jsonRules("", jsonRule("enterprise", `["header:x-api-key"]`, 2000,
		`"match": {"jwt:plan": "enterprise"}`), jsonRule("free", `["header:x-api-key"]`, 20, ""))))
	f.Add([]byte(jsonRules(`"evaluation": "first_match", "jwt": "unverified", "mode": "shadow"`,
		jsonRule("a", `["jwt:sub", "query:q"]`, 1<<30,
			`"on_missing": "shared", "match": {"header:x": 1}`))))
	f.Add([]byte(`{"policies": [{"id": "a", "spec": {"selector": {"hosts": ["a"]}, "rules": []}}]}`))
	f.Add([]byte(oneRule(`["header:k"]`,
		`"rps": 1e-9, "burst": 1, "cost_source": "header:w", "min_cost": 1e16`)))
	f.Add([]byte(`{"rules": [{"rules": 1e9999}, null]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ParsePolicy(data)
		if err != nil {
			if p != nil || !strings.HasPrefix(err.Error(), "httplimit: ") {
				t.Fatalf("%v %v", p, err)
			}
			return
		}
		l, err := New(p, WithFields(Fields{Policy: true, XRateLimit: true}))
		if err != nil {
			if !strings.Contains(err.Error(), "a key that the application adds") {
				t.Fatalf("what ParsePolicy accepts New does not: %v", err)
			}
			return
		}
		h := l.Middleware(http.HandlerFunc(nothing))
		for range 3 {
			w := httptest.NewRecorder()
			r := request("/v1/x?q=1", "K: 1", "W: 0.5", "X-Api-Key: k")
			h.ServeHTTP(w, r)
			for _, field := range []string{"RateLimit", "RateLimit-Policy"} {
				if _, err := httpsfv.UnmarshalList(w.Header().Values(field)); err != nil {
					t.Fatalf("%s: %v in %q", field, err, w.Header())
				}
			}
			switch w.Code {
			case http.StatusOK:
			case http.StatusTooManyRequests, http.StatusBadRequest:
				problem(t, w)
			default:
				t.Fatalf("status %d", w.Code)
			}
		}
		if err := l.SetPolicy(p); err != nil {
			t.Fatal(err)
		}
	})
}
