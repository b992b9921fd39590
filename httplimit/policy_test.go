package httplimit

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunglas/httpsfv"
	"github.com/seed-181794aa/ratelimit/internal/textfile"
)

// Every field of a policy has its line in docs/policy.md. internal/doctest checks its policies.
func TestFieldsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range strings.Fields(`name limit_keys match on_missing mode algorithm
		algorithm_config tokens_per_second rps burst cost_source fixed_cost default_cost min_cost
		max_cost rules evaluation selector hosts methods pathExact pathPrefix fallback_limit jwt
		policies id spec on_limit max_delay max_waiting status_costs block tiers
		priority adaptive except bundle_version issued_at expires_at kill_switches`) {
		if !strings.Contains(string(text), "`"+field+"`") {
			t.Errorf("%s is not documented", field)
		}
	}
}

// Keys that nothing supplies are reported with all other errors.
func TestParsePolicyForReportsAllErrorsAtOnce(t *testing.T) {
	policy := jsonRules(`"typo": 1`, jsonRule("a", `["ip:port", "header:"]`, 1, ""),
		jsonRule("a", `["nosuch", "jwt:sub"]`, 1, `"match": {"foo": 1},
			"except": [{"ip:address": ["10.0.0.0/8", "localhost"]}]`))
	const unknown = "must be ip:address, header:<name>, query:<name>, cookie:<name>, jwt:<claim> " +
		"or a key that the application adds "
	const want = `httplimit: policy:
typo is an unknown field
rules[0].limit_keys[1] must be header:<name>, with a name of A-Z a-z 0-9 _ - (got "header:")
rules[1].name must be unique (got "a" again)
rules[0].limit_keys[0] ` + unknown + `(got "ip:port")
rules[1].limit_keys[0] ` + unknown + `(got "nosuch")
rules[1].limit_keys[1] needs claims, which only "jwt": "unverified" supplies here (got "jwt:sub")
rules[1].match.foo ` + unknown + `(got "foo")
rules[1].except[0]["ip:address"][1] ` + mustBeNetwork + ` (got "localhost")`
	if p, err := ParsePolicyFor([]byte(policy), WithoutClaims()); p != nil || err == nil ||
		err.Error() != want {
		t.Errorf("%v\nwant\n%s", err, want)
	}
	supplied := WithExtractor("nosuch", func(*http.Request) string { return "" })
	p, err := ParsePolicyFor([]byte(jsonRule("a", `["nosuch"]`, 1, "")), supplied)
	if err != nil || len(p.Sets) != 1 {
		t.Error(err)
	}
	if _, err := ParsePolicyFor([]byte(jsonRule("a", "[]", 1, "")), WithTimeout(-1)); err == nil {
		t.Error("an option with an error is accepted")
	}
}

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

// A limiter follows its file until its context ends. What is rejected changes nothing, and has
// everything that is wrong.
func TestFromFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := PolicyFile{Name: filepath.Join(t.TempDir(), "policy.json")}
		var last Reload
		f.Reloaded = func(x Reload) { last = x }
		tenant := WithExtractor("tenant", func(*http.Request) string { return "t" })
		write := func(text string) {
			if err := os.WriteFile(f.Name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * textfile.PollInterval)
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		fails := func(want string) {
			_, err := FromFile(ctx, f, tenant)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
		fails("no such file")
		write(jsonRule("r", `["tenants"]`, 5, ""))
		fails("limit_keys[0]")
		write(jsonRule("r", `["tenant"]`, 5, ""))
		l, err := FromFile(ctx, f, tenant)
		if err != nil {
			t.Fatal(err)
		}
		write(jsonRule("r", `["tenant"]`, 5, ""))
		if last != (Reload{}) {
			t.Errorf("the same file: %+v", last)
		}
		write(jsonRule("r", `["tenant"]`, 7, ""))
		if n := l.Stats()[0].Limit.Capacity; n != 7 || last.Err != nil || last.Policy == nil {
			t.Errorf("a burst of %d, want 7, after %+v", n, last)
		}
		write(jsonRules(`"typo": 1`, jsonRule("r", `["tenants"]`, 9, "")))
		if last.Policy != nil || last.Err == nil || last.Cause != "the file changed" ||
			!strings.Contains(last.Err.Error(), "typo") ||
			!strings.Contains(last.Err.Error(), "rules[0].limit_keys[0]") {
			t.Errorf("a policy with errors: %+v", last)
		}
		cancel()
		synctest.Wait()
		write(jsonRule("r", `["tenant"]`, 9, ""))
		if n := l.Stats()[0].Limit.Capacity; n != 7 {
			t.Errorf("a burst of %d after the end, want 7", n)
		}
		if _, err := FromFile(ctx, f, WithTimeout(-1)); err == nil {
			t.Error("an option with an error is accepted")
		}
	})
}
