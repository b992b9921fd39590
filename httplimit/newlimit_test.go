package httplimit

import (
	"slices"
	"testing"
	"time"
)

// tokensLeft returns the tokens of the bucket that a request is charged to.
func (s *site) tokensLeft(lines ...string) float64 {
	s.t.Helper()
	all := s.Explain(request(lines...))
	if len(all) != 1 {
		s.t.Fatalf("%d rules apply: %+v", len(all), all)
	}
	return all[0].Level.Tokens
}

// reload puts a policy in force.
func (s *site) reload(policy string) {
	s.t.Helper()
	if err := s.SetPolicy(mustParse(s.t, policy)); err != nil {
		s.t.Fatal(err)
	}
}

func slowRule(rate float64, burst int) string {
	return oneRule(`["header:k"]`, sprintf(`"tokens_per_second": %v, "burst": %d`, rate, burst))
}

// A limit that changes keeps the tokens of each bucket, and the new rate fills the bucket. A client
// that was never seen has the new burst.
func TestReloadWithAnotherLimitKeepsTokens(t *testing.T) {
	s := newSite(t, slowRule(1, 10))
	for range 8 {
		s.get("K: 1")
	}
	for _, c := range []struct {
		rate  float64
		burst int
		after time.Duration
		want  float64
	}{
		{1, 10, 0, 2},                       // the same limit
		{1, 100, 0, 2},                      // a larger burst
		{5, 100, 0, 2},                      // a higher rate
		{5, 100, 2 * time.Second, 12},       // supplies
		{0.5, 100, 2 * time.Second, 13},     // a lower one
		{0.5, 4, 0, 4},                      // a smaller burst
		{0.5, 100, 0, 4},                    // does not come back
		{0.25, 1000, 4 * time.Second, 5},    // both
		{1, 1000, 1000 * time.Second, 1000}, // full
	} {
		s.reload(slowRule(c.rate, c.burst))
		s.now = s.now.Add(c.after)
		if got := s.tokensLeft("K: 1"); got != c.want {
			t.Errorf("%+v: %v tokens", c, got)
		}
		if got := s.tokensLeft("K: 2"); got != float64(c.burst) {
			t.Errorf("%+v: a new client has %v tokens", c, got)
		}
	}
	if st := s.Stats()[0]; st.Granted != 8 || st.Limit.Capacity != 1000 {
		t.Errorf("%+v", st)
	}
	wants(t, s.get("K: 1"), "RateLimit-Limit: 1000", "RateLimit-Remaining: 999")
}

// The limits of parent networks change with the limit of their rule, and with parent_factor.
func TestReloadChangesTheLimitsOfParentNetworks(t *testing.T) {
	policy := func(burst, factor int) string {
		return oneRule(`["ip:address/64,/48"]`,
			sprintf(`"tokens_per_second": 1, "burst": %d, "parent_factor": %d`, burst, factor))
	}
	s := newSite(t, policy(10, 2))
	s.get("X-A: 1")
	r := request()
	r.RemoteAddr = "[2001:db8::1]:1"
	s.send(r)
	for _, c := range []struct{ burst, factor, own, parent int }{
		{20, 4, 9, 19}, {5, 2, 5, 10}, {50, 3, 5, 10},
	} {
		s.reload(policy(c.burst, c.factor))
		all := s.Explain(r)
		if len(all) != 2 || all[0].Level.Tokens != float64(c.own) ||
			all[1].Level.Tokens != float64(c.parent) || all[1].Limit.Capacity != c.burst*c.factor {
			t.Errorf("%+v: %+v", c, all)
		}
	}
}

// A policy that is rejected changes nothing, not even one limit: neither if it has an error, nor if
// a new limiter cannot be made, nor if one of several limiters does not take its limit.
func TestRejectedReloadChangesNoLimit(t *testing.T) {
	rules := func(a, b, c int, more ...string) string {
		return jsonRules("", append(more, jsonRule("a", "[]", a, ""), jsonRule("b", "[]", b, ""),
			jsonRule("c", "[]", c, ""))...)
	}
	s := newSite(t, rules(10, 20, 30), WithStore(referenceStore{
		t: t, before: func(step, rule string) error {
			if step == "limiters" && rule == "broken:" {
				return errDown
			}
			return nil
		},
	}))
	capacities := func() (all []int) {
		for _, st := range s.Stats() {
			all = append(all, st.Limiter.(referenceTier).Limit().Capacity)
		}
		return all
	}
	for _, policy := range []string{
		rules(11, 21, unlucky), rules(unlucky, 21, 31),
		rules(11, 21, 31, jsonRule("broken", "[]", 1, "")), rules(11, 21, 0),
	} {
		p, err := ParsePolicy([]byte(policy))
		if err == nil {
			err = s.SetPolicy(p)
		}
		if err == nil {
			t.Errorf("%s is accepted", policy)
		}
		if got := capacities(); !slices.Equal(got, []int{10, 20, 30}) {
			t.Errorf("%v: the limits are %v", err, got)
		}
	}
	s.reload(rules(11, 21, 31))
	if got := capacities(); !slices.Equal(got, []int{11, 21, 31}) {
		t.Errorf("%v", got)
	}
}

// Debt is kept, too.
func TestReloadKeepsDebt(t *testing.T) {
	s := newSite(t, slowRule(1, 10), steady())
	key := s.Limiter.policy.Load().rules[0].table
	r, err := key.Reserve(t.Context(), keyOf(s, "K: 1"), 10)
	if err != nil || !r.Allowed {
		t.Fatal(r, err)
	}
	if r, err = key.Reserve(t.Context(), keyOf(s, "K: 1"), 6); err != nil || !r.Allowed {
		t.Fatal(r, err)
	}
	for _, burst := range []int{100, 7, 1000} {
		s.reload(slowRule(2, burst))
		wants(t, s.get("K: 1"), "Retry-After: 4") // 6 and 1 tokens at 2 a second
	}
	s.now = s.now.Add(4 * time.Second)
	s.granted(2, "K: 1")
}

// keyOf returns the key that a request has for the only rule.
func keyOf(s *site, lines ...string) string {
	c := s.begin(request(lines...))
	defer c.end()
	c.findRules()
	return string([]byte(c.entries[0].key))
}
