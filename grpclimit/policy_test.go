package grpclimit

import (
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"

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
	tiers := `, "tiers": {"by": "query:plan", "limits": {"a": {"rps": 1, "burst": 1}}}`
	for want, policy := range map[string]string{
		"query:id":          ruleOf("r", `"limit_keys": ["query:id"]`, ""),
		"query:x":           ruleOf("r", all+`, "match": {"query:x": "1"}`, ""),
		"header:Host":       ruleOf("r", `"limit_keys": ["header:Host"]`, ""),
		"query:n":           ruleOf("r", all, `, "cost_source": "query:n"`),
		"response:bytes":    ruleOf("r", all, `, "cost_source": "response:bytes"`),
		"response:header:x": ruleOf("r", all, `, "cost_source": "response:header:x"`),
		"query:plan":        ruleOf("r", all, tiers),
		"query:last": `{"rules": [` + ruleOf("first", all, "") + `], "fallback_limit": ` +
			ruleOf("r", `"limit_keys": ["query:last"]`, "") + `}`,
	} {
		wantRejected(t, policy, `rule "r": `+want+" has no meaning for a gRPC call")
	}
}

// A selector that picks no call is an error that names the set.
func TestSelectorsWithoutMeaning(t *testing.T) {
	for selector, want := range map[string]string{
		`"hosts": ["h"]`:                  "selector.hosts has no meaning for a gRPC call",
		`"methods": ["GET", "UnaryCall"]`: "selector.methods must have POST",
	} {
		wantRejected(t, `{"policies": [{"id": "s", "spec": {"selector": {`+selector+`}, "rules": [`+
			ruleOf("r", `"limit_keys": []`, "")+`]}}]}`, `set "s": `+want)
	}
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
		WithExtractor("user", nil))
	for _, want := range []string{
		"Limit is not valid", "(got \"tenant\")", "WithExtractor: want a key and a function",
		`rule "r": query:id has no meaning for a gRPC call`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

// A method that does not exist takes tokens only if the server has a handler for it.
func TestUnknownMethods(t *testing.T) {
	const unknown = "/no.Service/Method"
	for want, handler := range map[uint64]grpc.StreamHandler{
		0: nil, 1: func(any, grpc.ServerStream) error { return nil },
	} {
		l := mustNew(t, rule(`["grpc:method"]`, 1, ""), newClock().option())
		opts := interceptors(l)
		if handler != nil {
			opts = append(opts, grpc.UnknownServiceHandler(handler))
		}
		conn := start(t, &backend{}, opts)
		conn.Invoke(t.Context(), unknown, &testpb.Empty{}, &testpb.Empty{})
		if n := l.Stats()[0].Granted; n != want {
			t.Errorf("%d tokens were taken, want %d", n, want)
		}
	}
}

// A new policy keeps the tokens of a rule that stays, and reads the metadata of its new keys.
func TestSetPolicyKeepsTokens(t *testing.T) {
	l := mustNew(t, rule("[]", 5, ""), newClock().option())
	conn := start(t, &backend{}, interceptors(l))
	for range 5 {
		wantCode(t, unary(t.Context(), conn), codes.OK)
	}
	if err := l.SetPolicy(mustParse(t, rule("[]", 9, ""))); err != nil {
		t.Fatal(err)
	}
	wantCode(t, unary(t.Context(), conn), codes.ResourceExhausted)
	if err := l.SetPolicy(mustParse(t, rule(`["header:x-new"]`, 1, ""))); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]codes.Code{"a": codes.OK, "b": codes.OK} {
		wantCode(t, unary(with(t, "x-new", key), conn), want)
		wantCode(t, unary(with(t, "x-new", key), conn), codes.ResourceExhausted)
	}
}
