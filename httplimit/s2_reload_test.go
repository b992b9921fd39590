package httplimit

import (
	"testing"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Section 2: what a new policy leaves as it was.

func TestS2FailedReloadKeepsPolicy(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("a", "[]", 2, "")))
	s.get()
	bad := Rules(Rule{Name: "b", Keys: []string{"tenant"}, Limit: tb.Limit{Capacity: 9, Tokens: 1,
		Per: 1}})
	err := s.SetPolicy(bad)
	want := `httplimit: the policy stays as it was: rules[0].limit_keys[0]: ` +
		`there is no extractor for "tenant"`
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	s.granted(1)
}

func TestS2ReloadKeepsBucketsOfWhatIsUnchanged(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("a", `["header:k"]`, 3, ""), jsonRule("b",
		`["ip:address"]`, 5, "")))
	s.granted(3, "K: 1")
	// a has another match and another place, b another limit, c is new.
	if err := s.SetPolicy(mustParse(t, jsonRules("",
		jsonRule("c", `["header:c"]`, 1, ""), jsonRule("b", `["ip:address"]`, 6, ""),
		jsonRule("a", `["header:k"]`, 3, `"match": {"header:k": "1"}`)))); err != nil {
		t.Fatal(err)
	}
	for _, e := range s.Explain(request("K: 1", "C: 1")) {
		want := map[string]int{"a": 0, "b": 5, "c": 0}[e.Rule]
		if e.Remaining != want {
			t.Errorf("%s: %d left, want %d", e.Rule, e.Remaining, want)
		}
	}
	st := s.Stats()
	if a := st[2]; a.Rule != "a" || a.Granted != 3 || a.Refused != 1 || st[1].Granted != 0 {
		t.Errorf("%+v", st)
	}
	// The same name with other keys is another rule.
	if err := s.SetPolicy(mustParse(t, jsonRules("", jsonRule("a", `["query:k"]`, 3,
		"")))); err != nil {
		t.Fatal(err)
	}
	s.granted(3, "/?k=1")
}
