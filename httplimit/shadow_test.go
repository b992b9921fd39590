package httplimit

import (
	"net/http"
	"testing"

	"github.com/seed-181794aa/ratelimit/tb"
)

// A shadow rule applies where it would apply if it were enforced. The other rules apply as if the
// shadow rule were not there.
func TestShadowRuleInALadder(t *testing.T) {
	const gold = `"match": {"header:plan": "gold"}`
	keys := `["header:k"]`
	for _, c := range []struct {
		rules      []string
		evaluation string
		want       string // for gold
	}{
		{
			[]string{
				jsonRule("t", keys, 1, `"mode": "shadow"`), jsonRule("g", keys, 1, gold),
				jsonRule("f", keys, 1, ""),
			},
			"ladders", "g (t)",
		},
		{
			[]string{
				jsonRule("g", keys, 1, gold), jsonRule("t", keys, 1, `"mode": "shadow"`),
				jsonRule("f", keys, 1, ""),
			},
			"ladders", "g",
		},
		{[]string{
			jsonRule("g", keys, 1, gold+`, "mode": "shadow"`), jsonRule("t", keys, 1,
				`"mode": "shadow"`),
			jsonRule("f", keys, 1, ""),
		}, "ladders", "f (g)"},
		{[]string{jsonRule("f", keys, 1, ""), jsonRule("t", keys, 1, `"mode": "shadow"`)},
			"ladders", "f (t)"},
		{
			[]string{
				jsonRule("t", "[]", 1, `"mode": "shadow"`), jsonRule("g", keys, 1, gold),
				jsonRule("f", keys, 1, ""),
			},
			"first_match", "g (t)",
		},
		{[]string{jsonRule("g", keys, 1, gold), jsonRule("t", "[]", 1, `"mode": "shadow"`)},
			"first_match", "g"},
		{[]string{jsonRule("t", keys, 1, `"mode": "shadow"`), jsonRule("g", keys, 1, gold)},
			"all_match", "g (t)"},
	} {
		s := newSite(t, jsonRules(sprintf(`"evaluation": %q`, c.evaluation), c.rules...))
		if got := s.applying("K: 1", "Plan: gold"); got != c.want {
			t.Errorf("%s %v: %s, want %s", c.evaluation, c.rules, got, c.want)
		}
	}
}

func TestShadowSetsAndMissingKeys(t *testing.T) {
	var last Event
	s := newSite(t, jsonRules(`"mode": "shadow"`, jsonRule("a", "[]", 1, ""),
		jsonRule("b", `["header:k"]`, 1, `"on_missing": "reject"`)),
		WithHooks(Hooks{Shadow: func(_ *http.Request, e Event) { last = e }}))
	for range 3 {
		if w := s.get(); w.Code != http.StatusOK || len(w.Header()) > 0 {
			t.Fatalf("%d %v", w.Code, w.Header())
		}
	}
	if st := s.Stats(); st[0].ShadowRefused != 2 || st[1].ShadowRefused != 3 {
		t.Errorf("%+v", st)
	}
	if last.Rule != "b" || last.Allowed || last.RetryAfter != tb.Never {
		t.Errorf("Shadow got %+v", last)
	}
}
