package grpclimit

import (
	"os"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// ruleOf returns a rule with more fields, and more fields of its algorithm_config.
func ruleOf(name, more, config string) string {
	return `{"name": "` + name + `", ` + more + `,
		"algorithm_config": {"tokens_per_second": 1, "burst": 5` + config + `}}`
}

// A source that no gRPC call has is an error that names the rule, in New and in SetPolicy.
func TestSourcesWithoutMeaning(t *testing.T) {
	const all = `"limit_keys": []`
	health := ruleOf("r", all+`, "match": {"grpc:method": "`+healthCheck+`"}`, "")
	wantRejected(t, health, `rule "r": match has an exempt method (got "`+healthCheck)
	tiers := `, "tiers": {"by": "query:plan", "limits": {"a": {"rps": 1, "burst": 1}}}`
	const status = `, "cost_source": "response:status", "status_costs": `
	mustNew(t, ruleOf("r", all, status+`{"401": 1, "UNAUTHENTICATED": 1}`))
	for want, policy := range map[string]string{
		"query:id":          ruleOf("r", `"limit_keys": ["query:id"]`, ""),
		"query:x":           ruleOf("r", all+`, "match": {"query:x": "1"}`, ""),
		"query:class":       ruleOf("r", all+`, "priority": {"by": "query:class", "keep": {"*": 0}}`, ""),
		"header:Host":       ruleOf("r", `"limit_keys": ["header:Host"]`, ""),
		"query:n":           ruleOf("r", all, `, "cost_source": "query:n"`),
		"response:bytes":    ruleOf("r", all, `, "cost_source": "response:bytes"`),
		"response:header:x": ruleOf("r", all, `, "cost_source": "response:header:x"`),
		"query:plan":        ruleOf("r", all, tiers),
		"status_costs":      ruleOf("r", all, status+`{"401": 1, "5xx": 0}`),
		"query:last": `{"rules": [` + ruleOf("first", all, "") + `], "fallback_limit": ` +
			ruleOf("r", `"limit_keys": ["query:last"]`, "") + `}`,
	} {
		wantRejected(t, policy, `rule "r": `+want+" has no meaning for a gRPC call")
	}
}

// A selector that picks no call that has a limit is an error that names the set.
func TestSelectorsWithoutMeaning(t *testing.T) {
	const check = `"` + healthCheck + `"`
	for selector, want := range map[string]string{
		`"hosts": ["h"]`:                  "selector.hosts has no meaning for a gRPC call",
		`"methods": ["GET", "UnaryCall"]`: "selector.methods must have POST",
		`"pathExact": ` + check:           "selector.pathExact is an exempt method",
		`"pathPrefix": ` + check:          "selector.pathPrefix is an exempt method",
		`"pathPrefix": "` + healthCheck + `/", "pathExact": ` + check: "selector.pathPrefix is an exempt",
	} {
		wantRejected(t, `{"policies": [{"id": "s", "spec": {"selector": {`+selector+`}, "rules": [`+
			ruleOf("r", `"limit_keys": []`, "")+`]}}]}`, `set "s": `+want)
	}
	wantRejected(t, `{"except": [{"hosts": ["h"]}], "rules": [`+
		ruleOf("r", `"limit_keys": []`, "")+`]}`, "policy: except[0].hosts has no meaning")
	wantRejected(t, ruleOf("r", `"limit_keys": [], "except": [{"methods": ["GET"]}]`, ""),
		`rule "r": except[0].methods must have POST`)
}

// The policy in docs/grpc.md is one for calls.
func TestPolicyOfTheDocument(t *testing.T) {
	document, err := os.ReadFile("../docs/grpc.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(document), "\n```json\n")
	text, _, _ = strings.Cut(text, "\n```\n")
	mustNew(t, text)
}

// wantRejected fails the test unless New and SetPolicy return an error that begins with this text,
// and SetPolicy leaves the policy as it was.
func wantRejected(t *testing.T, policy, want string) {
	t.Helper()
	p := mustParse(t, policy)
	if _, err := New(p); err == nil || !strings.HasPrefix(err.Error(), "grpclimit: "+want) {
		t.Errorf("New of %s: %v, want %s", policy, err, want)
	}
	l := mustNew(t, ruleOf("before", `"limit_keys": []`, ""))
	stays := "grpclimit: the policy stays as it was: " + want
	if err := l.SetPolicy(p); err == nil || !strings.HasPrefix(err.Error(), stays) {
		t.Errorf("SetPolicy of %s: %v, want %s", policy, err, want)
	}
	if name := l.Stats()[0].Rule; name != "before" {
		t.Errorf("SetPolicy of %s has set the rule %s", policy, name)
	}
}

func TestWithoutAPolicy(t *testing.T) {
	if l, err := New(nil); l != nil || err == nil {
		t.Errorf("%v, %v: want an error", l, err)
	}
	l := mustNew(t, ruleOf("before", `"limit_keys": []`, ""))
	if err := l.SetPolicy(nil); err == nil || l.Stats()[0].Rule != "before" {
		t.Errorf("%v, %+v: want an error, and the policy as before", err, l.Stats())
	}
}

// The errors of the policy, the options and the fields without a meaning are all there.
func TestErrorsAreJoined(t *testing.T) {
	_, err := New(httplimit.Rules(httplimit.Rule{Name: "r", Keys: []string{"query:id", "tenant"}}),
		WithHTTPOptions(httplimit.WithExtractor("user", nil)), WithExempt("Health/Check"))
	for _, want := range []string{
		"limit is not valid", "(got \"tenant\")", "WithExtractor: want a key and a function",
		`rule "r": query:id has no meaning for a gRPC call`, `Service/Method, got "Health/Check"`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}
