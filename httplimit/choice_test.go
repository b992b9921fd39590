package httplimit

import (
	"strings"
	"testing"
	"time"
)

// plans is a rule of 10 tokens for all keys, with tiers of these bursts.
func plans(tiers ...any) string {
	var limits []string
	for i := 0; i < len(tiers); i += 2 {
		limit := sprintf(`%q: {"tokens_per_second": 1, "burst": %d}`, tiers[i], tiers[i+1])
		limits = append(limits, limit)
	}
	return oneRule(`["header:k"]`, sprintf(`"tokens_per_second": 1, "burst": 10,
		"tiers": {"by": "header:plan", "limits": {%s}}`, strings.Join(limits, ",")))
}

// All spellings of a value name one tier. A value of which nothing is left keeps its spelling.
func TestSpellingsOfTiers(t *testing.T) {
	s := newSite(t, oneRule("[]", `"rps": 1, "burst": 10, "tiers": {"by": "header:content-type",
		"limits": {"Text/HTML;q=1": {"rps": 1, "burst": 20}, ";": {"rps": 1, "burst": 30}}}`))
	for value, want := range map[string]int{
		"text/html": 20, "TEXT/html; x=2": 20, "Text/HTML;q=1": 20, ";": 30, ";;": 10, "text/plain": 10,
	} {
		if got := s.Explain(request("Content-Type: " + value))[0].Limit.Capacity; got != want {
			t.Errorf("%q: the burst is %d, want %d", value, got, want)
		}
	}
}

// Clients see the limit of their tier.
func TestFieldsOfATier(t *testing.T) {
	s := newSite(t, plans("gold", 50), WithFields(Fields{Policy: true}))
	wants(t, s.get("K: 1", "Plan: gold"), "RateLimit-Limit: 50", `RateLimit-Policy: "r";q=50;w=50`)
	wants(t, s.get("K: 2"), "RateLimit-Limit: 10", `RateLimit-Policy: "r";q=10;w=10`)
}

// A reload changes the limits of tiers, adds and removes them, and makes a rule with tiers of one
// without. All buckets keep their tokens.
func TestReloadOfTiersKeepsTokens(t *testing.T) {
	many := []any{"a", 1, "gold", 60} // so gold has another number than in other policies
	for i := range 300 {
		many = append(many, sprint("plan", i), 70+i)
	}
	s := newSite(t, plans("gold", 50))
	for range 45 {
		s.get("K: 1", "Plan: gold")
	}
	for _, c := range []struct {
		policy string
		plan   string
		limit  int
		want   float64
	}{
		{plans("gold", 100), "gold", 100, 5},
		{plans("gold", 100, "silver", 45), "silver", 45, 5},
		{plans("silver", 45), "gold", 10, 5}, // gold is gone
		{plans("gold", 90, "silver", 45), "gold", 90, 5},
		{slowRule(1, 20), "gold", 20, 5},
		{plans("silver", 45), "silver", 45, 5},
		{plans(many...), "plan299", 369, 5},
		{plans("gold", 4), "gold", 4, 4},
		{plans(many...), "plan0", 70, 4},
		{slowRule(1, 3), "", 3, 3},
		{plans("gold", 50), "gold", 50, 3},
		{plans(many...), "gold", 60, 3},
	} {
		s.reload(c.policy)
		lines := []string{"K: 1", "Plan: " + c.plan}
		if got := s.Explain(request(lines...))[0].Limit.Capacity; got != c.limit {
			t.Errorf("%s: %d, want %d", c.plan, got, c.limit)
		}
		s.get(lines...)
		if got := s.left(lines...); got != c.want-1 {
			t.Errorf("%s of %d: %v tokens, want %v", c.plan, c.limit, got, c.want-1)
		}
		s.now = s.now.Add(time.Second) // the token comes back
	}
	if got := s.Stats()[0].Table.Keys; got != 1 {
		t.Errorf("%d keys", got)
	}
}

// Names that are gone keep their places in the table. The counts begin anew with the first name
// that finds none.
func TestPlacesOfTiers(t *testing.T) {
	for first, places := range map[int]int{1: 127, 63: 127, 64: 129} {
		named := func(from, to int) string {
			var all []any
			for i := from; i < to; i++ {
				all = append(all, sprint("plan", i), 20)
			}
			return plans(all...)
		}
		s := newSite(t, named(0, first))
		s.get("K: 1")
		for _, c := range []struct {
			from, to int
			counted  uint64
		}{
			{first, 100, 1}, {100, places, 1}, {0, 1, 1}, // all places are taken
			{places, places + 1, 0}, {0, first, 0},
		} {
			s.reload(named(c.from, c.to))
			if got := s.Stats()[0].Granted; got != c.counted {
				t.Errorf("%d tiers at first, then %d to %d: %d requests counted, want %d", first, c.from, c.to,
					got, c.counted)
			}
		}
		if got := s.left("K: 1"); got != 9 {
			t.Errorf("%d tiers at first: %v tokens, want 9", first, got)
		}
	}
}

func TestSnapshotsHaveTiers(t *testing.T) {
	s := newSite(t, plans("gold", 50, "a \"b\"", 50))
	for i, plan := range []string{"gold", "a \"b\"", "none", "gold"} {
		for range []int{45, 46, 47, 1}[i] {
			s.get(sprint("K: ", i), "Plan: "+plan)
		}
	}
	text := s.snapshot()
	for _, c := range []struct {
		policy string
		plan   [4]string
		want   [4]float64
	}{
		{plans("gold", 50, "a \"b\"", 50), [4]string{"gold", "a \"b\"", "none", "gold"},
			[4]float64{5, 4, 0, 49}},
		{plans("gold", 30), [4]string{"gold", "gold", "none", "gold"}, [4]float64{5, 4, 0, 30}},
		{plans("a", 1, "gold", 50), [4]string{"gold", "gold", "none", "gold"},
			[4]float64{5, 4, 0, 49}},
		{slowRule(1, 100), [4]string{}, [4]float64{5, 4, 0, 49}},
	} {
		next, done := s.restarted(text, c.policy)
		for i, plan := range c.plan {
			got := next.left(sprint("K: ", i), "Plan: "+plan)
			if got != c.want[i] || done.Buckets != 4 {
				t.Errorf("key %d, plan %q: %v tokens, want %v, %+v\n%s", i, plan, got, c.want[i], done, text)
			}
		}
	}
}

// A key of a tier that is gone has the limit of the rule from the reload on, and not only from its
// next request on.
func TestTierThatIsGone(t *testing.T) {
	fast := strings.Replace(plans("gold", 50), `"gold": {"tokens_per_second": 1,`,
		`"gold": {"tokens_per_second": 20,`, 1)
	s := newSite(t, fast)
	s.get("K: more", "Plan: gold")
	for range 50 {
		s.get("K: none", "Plan: gold")
	}
	s.reload(plans("silver", 50))
	s.now = s.now.Add(2 * time.Second)
	s.reload(fast)
	for key, want := range map[string]float64{"more": 10, "none": 2} {
		if got := s.left("K: "+key, "Plan: gold"); got != want {
			t.Errorf("%s: %v tokens, want %v", key, got, want)
		}
	}
}

// A reload may give a tier its name while a snapshot reads the names, which the race detector sees.
func TestReloadOfTiersDuringASnapshot(t *testing.T) {
	s := newSite(t, plans("gold", 50))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 50 {
			s.reload(plans(sprint("plan", i), 20))
		}
	}()
	for {
		s.snapshot()
		select {
		case <-done:
			return
		default:
		}
	}
}

// left is how many requests of a class a full bucket grants.
func TestPriority(t *testing.T) {
	for _, c := range []struct {
		name, rule string
		fields     []string
		class      string
		left       int
	}{
		{"a share that floating point has not", `"burst": 30} %s`, []string{"Class: a"}, "a", 27},
		{"a class without a share", `"burst": 30} %s`, []string{"Class: admin"}, "admin", 30},
		{"any other class", `"burst": 30} %s`, []string{"Class: x"}, "*", 24},
		{"no class", `"burst": 30} %s`, nil, "*", 24},
		{"an empty class", `"burst": 30} %s`, []string{"Class: "}, "*", 24},
		{"the burst of a tier", `"burst": 30, "tiers": {"by": "header:plan", "limits": {"gold": {
			"rps": 1, "burst": 100}}}} %s`, []string{"Class: a", "Plan: gold"}, "a", 90},
		{"an adaptive rate", `"burst": 30, "adaptive": {"min": 1, "max": 2, "target_p99": "1s"}} %s`,
			[]string{"Class: a"}, "a", 27},
		{"a fraction", `"burst": 1, "fixed_cost": 0.45} %s`, []string{"Class: a"}, "a", 2},
		{"a cost in the response", `"burst": 30, "cost_source": "response:status",
			"status_costs": {"2xx": 2}} %s`, []string{"Class: a"}, "a", 14},
	} {
		s := newSite(t, `{"name": "r", "limit_keys": [], "algorithm_config": {"rps": 1, `+
			sprintf(c.rule, `, "priority": {"by": "header:class", "keep": {
				"a": 0.1, "admin": 0, "*": 0.2}}}`))
		x := s.Explain(request(c.fields...))[0]
		if c.left > 20 && x.Remaining != c.left-1 || x.Class != c.class {
			t.Errorf("%s: %d remain after one request of %q, want %d of %q", c.name, x.Remaining, x.Class,
				c.left-1, c.class)
		}
		s.granted(c.left, c.fields...)
		if c.name == "no class" {
			s.granted(3, "Class: a")
			s.granted(3, "Class: admin")
		}
	}
	// The classes of a shadow rule refuse nothing, and two spellings of a host are one class.
	s := newSite(t, `{"name": "r", "limit_keys": [], "mode": "shadow",
		"priority": {"by": "header:class", "keep": {"a": 0.5, "b": 0}},
		"algorithm_config": {"rps": 1, "burst": 4}}`)
	for range 3 {
		s.get("Class: a", "Class: b")
	}
	if st := s.Stats()[0]; st.ShadowGranted != 2 || st.ShadowRefused != 1 {
		t.Errorf("%+v, want a repeated class to leave the most", st)
	}
	for keep, want := range map[string]string{
		`{"h": 0.5, "H": 0.1}`: "priority.keep.h must not have the same values as \"H\"",
		`{"a b": 0.5}`:         `priority.keep["a b"] must be a host name`,
	} {
		_, err := New(mustParse(t, `{"name": "r", "limit_keys": [], "priority": {"by": "header:host",
			"keep": `+keep+`}, "algorithm_config": {"rps": 1, "burst": 4}}`))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", keep, err, want)
		}
	}
}
