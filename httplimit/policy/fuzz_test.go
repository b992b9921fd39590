package policy

import (
	"strings"
	"testing"
)

// FuzzParse parses any document. A policy that is accepted has a document, of which Parse makes the
// same policy.
func FuzzParse(f *testing.F) {
	for _, policy := range fairvisorExamples {
		f.Add([]byte(policy))
	}
	f.Add([]byte(jsonRules(`"evaluation": "first_match", "jwt": "unverified", "mode": "shadow"`,
		jsonRule("a", `["jwt:sub", "query:q"]`, 1<<30,
			`"on_missing": "shared", "block": "1h", "match": {"header:x": 1},
			"except": [{"hosts": ["a"], "methods": ["GET"], "pathExact": "/a", "pathPrefix": "/b",
				"ip:address": ["10.0.0.0/8"]}]`))))
	f.Add([]byte(`{"policies": [{"id": "a", "spec": {"selector": {"hosts": ["a"]}, "rules": []}}]}`))
	f.Add([]byte(oneRule(`["header:k"]`,
		`"rps": 1e-9, "burst": 1, "cost_source": "header:w", "min_cost": 1e16`)))
	f.Add([]byte(oneRule("[]", `"rps": 1, "burst": 1, "cost_source": "response:status",
		"status_costs": {"401": 1, "2xx": 0, "OK": 1e-40}`)))
	f.Add([]byte(jsonRule("r", "[]", 9,
		`"priority": {"by": "header:x", "keep": {"a": 0.5, "*": 0}}`)))
	f.Add([]byte(`{"rules": [{"rules": 1e9999}, null]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Parse(data)
		switch {
		case err == nil:
			roundTrip(t, p)
		case p != nil || !strings.HasPrefix(err.Error(), "httplimit: "):
			t.Fatalf("%v %v", p, err)
		}
	})
}
