package httplimit

import (
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// referenceStore is a Store of limiters of tb/mutex.
type referenceStore struct {
	t       *testing.T
	opts    []tb.Option // of the limiters
	patient bool        // wants calls without a time limit
	answers
	// before is called before each step, and its error is the error of the step. It may be nil. The
	// steps are limiters and take all, with the name of the rule or "", and charge, take, level
	// and settle, with the key.
	before func(step, on string) error
}

// answers replace the true ones of a referenceStore. What is nil changes nothing.
type answers struct {
	all      func() (decisions []tb.Decision, allowed bool) // of TakeAll
	decision *tb.Decision                                   // of a charge
	delay    *time.Duration
	level    *tb.Level
	noCharge bool // once the store is in use
}

func (s referenceStore) step(step, on string) error {
	if s.before == nil {
		return nil
	}
	return s.before(step, on)
}

// at returns a function for before that does something at one step.
func at(step string, do func(on string) error) func(step, on string) error {
	return func(s, on string) error {
		if s == step {
			return do(on)
		}
		return nil
	}
}

func fail(string) error { return errDown }

// unlucky is a capacity that limiters of a referenceStore do not take.
const unlucky = 13

type referenceTier struct {
	*mutex.Limiter[string]
	tier  int
	store referenceStore
}

type referenceCharge struct {
	*mutex.Charge[string]
	key   string
	store referenceStore
}

func (s referenceStore) Limiters(
	rule string, limits []tb.Limit,
) (all []tb.StoreLimiter, err error) {
	l, err := mutex.NewTiered[string](limits, s.opts...)
	for i := range limits {
		all = append(all, referenceTier{l, i, s})
	}
	return all, errors.Join(err, s.step("limiters", rule))
}

func (s referenceStore) TakeAll(
	ctx context.Context, t time.Time, charges []tb.Charge, buf []tb.Decision,
) ([]tb.Decision, bool, error) {
	if _, ok := ctx.Deadline(); ok == s.patient || ctx.Err() != nil {
		s.t.Error("the context has the deadline of the client, none or one too many")
	}
	if err := s.step("take all", ""); err != nil {
		return nil, false, err
	}
	decisions, allowed, err := tb.TakeAll(t, charges, buf)
	if s.all != nil {
		decisions, allowed = s.all()
	}
	return decisions, allowed, err
}

func (r referenceTier) Charge(key string, cost float64) (tb.StoreCharge, error) {
	if err := r.store.step("charge", key); err != nil {
		return nil, err
	}
	if r.store.noCharge && key != "" {
		return nil, nil
	}
	c, err := r.ChargeIn(r.tier, key, cost)
	return referenceCharge{&c, key, r.store}, err
}

func (r referenceTier) SetLimit(limit tb.Limit) error {
	if limit.Capacity == unlucky {
		return errors.New("unlucky")
	}
	return r.SetTier(r.tier, limit)
}

func (r referenceTier) Limit() tb.Limit { return r.Tiers()[r.tier] }

func (c referenceCharge) Take(t time.Time) (tb.Decision, error) {
	if err := c.store.step("take", c.key); err != nil {
		return tb.Decision{}, err
	}
	if d := c.store.decision; d != nil {
		return *d, nil
	}
	return c.Charge.Take(t)
}

func (c referenceCharge) Delay() time.Duration {
	if d := c.store.delay; d != nil {
		return *d
	}
	return c.Charge.Delay()
}

func (c referenceCharge) Level(t time.Time) (tb.Level, error) {
	if err := c.store.step("level", c.key); err != nil {
		return tb.Level{Tokens: 99}, err
	}
	if level := c.store.level; level != nil {
		return *level, nil
	}
	return c.Charge.Level(t)
}

func (c referenceCharge) Settle(actual float64) error {
	return errors.Join(c.store.step("settle", c.key), c.Charge.Settle(actual))
}

// bareStore has one limiter for all limits, without Reset.
type bareStore struct{ referenceStore }

func (s bareStore) Limiters(rule string, limits []tb.Limit) ([]tb.StoreLimiter, error) {
	all, err := s.referenceStore.Limiters(rule, limits)
	return []tb.StoreLimiter{struct{ tb.StoreLimiter }{all[0]}}, err
}

// What a store lacks is an error of New.
func TestStoresThatLackSomething(t *testing.T) {
	whole := referenceStore{t: t}
	for want, opts := range map[string][]Option{
		"WithStore: want a store": {WithStore(nil)},
		`rule "key": the store httplimit.bareStore returns nonsense: 1 limiters`: {
			WithStore(bareStore{whole})},
		`rule "key": ` + errDown.Error(): {WithStore(referenceStore{t: t, before: at("charge", fail)})},
	} {
		if _, err := New(mustParse(t, everything(0)), opts...); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A rule that a store has not asked has refused nothing.
func TestAStoreThatAsksFewRules(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("a", "[]", 1, ""), jsonRule("b", "[]", 5, "")),
		WithStore(referenceStore{t: t, answers: answers{all: func() ([]tb.Decision, bool) {
			return []tb.Decision{{RetryAfter: 1}, {}}, false
		}}}))
	s.granted(0)
	if all := s.Stats(); all[0].Refused == 0 || all[1].Refused != 0 {
		t.Errorf("refused by %d and %d rules, want only by the first", all[0].Refused, all[1].Refused)
	}
}

// If a store fails, all requests pass or none does, and it is asked once for a request. Afterwards
// all buckets are as before.
func TestAStoreThatFails(t *testing.T) {
	policy := jsonRules("", jsonRule("a", "[]", 2, ""), jsonRule("b", `["header:k"]`, 3, ""),
		jsonRule("x", "[]", 1, `"mode": "shadow"`), jsonRule("y", "[]", 1, `"mode": "shadow"`))
	for _, failing := range []string{"take all", "charge"} {
		for _, closed := range []bool{false, true} {
			var down error
			var events, steps []string
			store := referenceStore{t: t, before: func(step, _ string) error {
				if steps = append(steps, step); step == failing || step == "limiters" {
					return down
				}
				return nil
			}}
			opts := []Option{WithStore(store), WithHooks(Hooks{Error: func(_ *http.Request, e Event) {
				events = append(events, e.Rule+": "+e.Err.Error())
			}})}
			want := http.StatusOK
			if closed {
				opts, want = append(opts, WithFailClosed()), http.StatusServiceUnavailable
			}
			s := newSite(t, policy, opts...)
			down = errors.New("down")
			for range 5 {
				steps = nil
				w := s.get("K: k")
				asked := len(steps) - len(slices.DeleteFunc(slices.Clone(steps), func(step string) bool {
					return step == failing || step == "take"
				}))
				if w.Code != want || w.Header().Get("RateLimit") != "" || asked != 1 {
					t.Errorf("status %d, want %d, after %q: %v", w.Code, want, steps, w.Header())
				}
			}
			if err := s.SetPolicy(mustParse(t, jsonRule("new", "[]", 1, ""))); err == nil {
				t.Error("a policy without limiters is in force")
			}
			down = nil
			s.granted(2, "K: k")
			if got := events[0]; got != "a: down" {
				t.Errorf("the event is %q", got)
			}
			for i, st := range s.Stats() {
				want := uint64(5)
				if closed && i >= 2 || i == 1 {
					want = 0
				}
				if st.Errors != want || st.Limiter == nil {
					t.Errorf("%+v, want %d errors and a limiter", st, want)
				}
			}
		}
	}
}

// A request that passes because its store failed is not charged, so it is not settled. A settlement
// that fails is an error of the rule.
func TestAStoreThatFailsToSettle(t *testing.T) {
	failing := ""
	clock := tb.WithClock(func() time.Time { return time.Unix(1_800_000_000, 0) })
	store := referenceStore{t: t, opts: []tb.Option{clock}, before: func(step, _ string) error {
		if step == failing {
			return errors.New(step)
		}
		return nil
	}}
	s := newSite(t, jsonRules("", reporting("response:bytes", ""),
		strings.Replace(reporting("response:bytes", ""), `"r"`, `"s"`, 1)), WithStore(store))
	s.answer(write(50))
	for i, tt := range []struct {
		failing         string
		settled, failed uint64
		left            float64
	}{{"", 1, 0, 50}, {"take all", 1, 1, 50}, {"settle", 1, 2, 0}} {
		failing = tt.failing
		s.get()
		if st := s.Stats()[0]; st.Settled != tt.settled || st.Errors != tt.failed {
			t.Errorf("%d: %+v", i, st)
		}
		// The other rule settles, too, if the first one fails to.
		if st := s.Stats()[1]; st.Settled+st.Errors != uint64(1+i/2) {
			t.Errorf("%d: %+v", i, st)
		}
		if failing = ""; s.left() != tt.left {
			t.Errorf("%d: %v left, want %v", i, s.left(), tt.left)
		}
	}
}

// A shadow rule that fails alone does not touch the others before it.
func TestAShadowRuleInAStoreThatFails(t *testing.T) {
	for _, failing := range []string{"charge", "take"} {
		var down error
		failed, decided := 0, 0
		store := referenceStore{t: t, before: at(failing, func(string) error {
			if down != nil {
				failed++
			}
			return down
		})}
		s := newSite(t, jsonRules("", delaying("x", "[]", 3, `"mode": "shadow"`),
			jsonRule("y", "[]", 3, `"mode": "shadow"`)), WithStore(store), WithFailClosed(),
			WithHooks(Hooks{Shadow: func(*http.Request, Event) { decided++ }}))
		s.get()
		down = errors.New("down")
		if w := s.get(); w.Code != http.StatusOK {
			t.Errorf("%s: status %d", failing, w.Code)
		}
		for _, st := range s.Stats() {
			if st.ShadowGranted != 1 || st.Errors != 1 {
				t.Errorf("%s: %+v", failing, st)
			}
		}
		if failed != 1 || decided != 2 {
			t.Errorf("%s: the store failed %d times, and decided %d times: want once, and twice",
				failing, failed, decided)
		}
	}
}

// A rule that gets tiers gets other limiters, which the store makes for the same buckets.
func TestARuleInAStoreGetsTiers(t *testing.T) {
	var names []string
	s := newSite(t, oneRule("[]", `"rps": 1, "burst": 2`), WithStore(referenceStore{
		t: t, before: at("limiters", func(rule string) error { names = append(names, rule); return nil }),
	}))
	tiers := `"rps": 1, "burst": 2,
		"tiers": {"by": "header:plan", "limits": {"a": {"rps": 1, "burst": 3}}}`
	s.reload(oneRule("[]", tiers))
	s.granted(3, "Plan: a")
	if !slices.Equal(names, []string{"r:", "r:"}) {
		t.Errorf("%q", names)
	}
}

// A store decides by its own clock, so a delay counts from the time at which its decision comes.
func TestADelayCountsFromTheDecisionOfAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, delaying("r", "[]", 10, ""), WithStore(referenceStore{
			t: t, before: at("take all", func(string) error {
				time.Sleep(60 * time.Millisecond)
				return nil
			}),
		}), WithHooks(Hooks{Delayed: func(*http.Request, Event) { time.Sleep(50 * time.Millisecond) }}))
		for range 11 {
			q.get("x")
		}
		q.saw(append(slices.Repeat([]string{"60 served x"}, 10), "160 served x")...)
	})
}

// A store may keep the keys of its calls, although the limiter uses its buffer again.
func TestAStoreMayKeepKeys(t *testing.T) {
	var keys []string
	s := newSite(t, jsonRule("r", `["header:k"]`, 5, ""), WithStore(referenceStore{
		t: t, before: at("take", func(key string) error { keys = append(keys, key); return nil }),
	}))
	for _, k := range []string{"one", "two", "six"} {
		s.get("K: " + k)
	}
	if want := []string{"one", "two", "six"}; !slices.Equal(keys, want) {
		t.Errorf("%q", keys)
	}
}

// A request gives back what it has taken if it must not wait. If its store fails then, it passes,
// and there is nothing to settle.
func TestAStoreThatFailsAfterADelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q *queue
		var down error
		store := referenceStore{t: t, before: at("take all", func(string) error { return down })}
		q = newQueue(t, `{"max_waiting": 1, "rules": [{"name": "r", "limit_keys": [],
			"on_limit": "delay", "max_delay": "1s", "algorithm_config": {"rps": 10, "burst": 10,
				"default_cost": 10, "cost_source": "response:header:used"}}]}`, WithStore(store),
			WithHooks(Hooks{Delayed: func(*http.Request, Event) {
				q.waits.count.Add(1) // by another request
				down = errors.New("down")
			}}))
		q.get("first")
		q.get("second")
		q.waits.count.Add(-1)
		q.saw("0 served first", "0 served second")
		if st := q.Stats()[0]; st.Granted != 1 || st.Errors != 1 || st.Estimated != 1 {
			t.Errorf("%+v, want one request that was charged, and one error", st)
		}
		if tokens := q.Explain(request())[0].Level.Tokens; tokens != 0 {
			t.Errorf("%v tokens, want none and no debt", tokens)
		}
	})
}

// No rule has the name of another one in a store, whatever their sets, names and keys are.
func TestNamesInAStoreDiffer(t *testing.T) {
	seen := map[string]bool{}
	for _, id := range []string{
		ruleID("", "a:b", []string{"x,y"}),
		ruleID("", "a:b", []string{"x", "y"}),
		ruleID("a", "b", []string{"x,y"}),
		ruleID("", "a%3Ab", []string{"x,y"}),
		ruleID("b:x,y", "a", nil),
	} {
		if seen[id] {
			t.Errorf("%q is the id of two rules", id)
		}
		seen[id] = true
	}
}

var errDown = errors.New("store is down")

// A client can choose the deadline of a request, for example with Grpc-Timeout, and can disconnect.
// A store that honours its context must not fail because of that: the request would pass.
func TestClientsDoNotChooseTheTimeLimitOfAStore(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	for name, opts := range map[string][]Option{
		"memory":        nil,
		"store":         {WithStore(referenceStore{t: t})},
		"patient store": {WithStore(referenceStore{t: t, patient: true}), WithTimeout(0)},
	} {
		s := newSite(t, jsonRule("r", "[]", 2, ""), opts...)
		for i, ctx := range []context.Context{canceled, late, canceled, late} {
			w := s.send(request().WithContext(ctx))
			if want := []int{200, 200, 429, 429}[i]; w.Code != want {
				t.Errorf("%s, request %d: status %d, want %d", name, i, w.Code, want)
			}
		}
	}
}

type stuckStore struct {
	referenceStore
	seen *context.Context
}

func (s stuckStore) TakeAll(
	ctx context.Context, _ time.Time, _ []tb.Charge, _ []tb.Decision,
) ([]tb.Decision, bool, error) {
	*s.seen = ctx
	<-ctx.Done()
	return nil, false, ctx.Err()
}

// A store that does not answer in time has failed. It sees the values of the request's context.
func TestTimeLimitOfAStore(t *testing.T) {
	type key struct{}
	for want, opts := range map[time.Duration][]Option{
		defaultTimeout: nil, time.Minute: {WithTimeout(time.Minute)},
	} {
		synctest.Test(t, func(t *testing.T) {
			var seen context.Context
			s := newSite(t, jsonRule("r", "[]", 2, ""),
				append(opts, WithStore(stuckStore{seen: &seen}))...)
			start := time.Now()
			w := s.send(request().WithContext(context.WithValue(t.Context(), key{}, "v")))
			if waited := time.Since(start); w.Code != http.StatusOK || waited != want {
				t.Errorf("status %d after %v", w.Code, waited)
			}
			if v := seen.Value(key{}); v != "v" || s.Stats()[0].Errors != 1 {
				t.Errorf("the store sees the value %v", v)
			}
		})
	}
}

// wantFailure sends a request to limiters of a store, which must have failed: the request passes,
// or gets 503, and the error names the store.
func wantFailure(t *testing.T, name, policy string, a answers) {
	t.Helper()
	for _, closed := range []bool{false, true} {
		var failure error
		opts := []Option{WithStore(referenceStore{t: t, answers: a}), WithHooks(Hooks{
			Error: func(_ *http.Request, e Event) { failure = e.Err },
		})}
		want := http.StatusOK
		if closed {
			opts, want = append(opts, WithFailClosed()), http.StatusServiceUnavailable
		}
		s := newSite(t, policy, opts...)
		w := s.get("K: k")
		if strings.Contains(policy, "shadow") {
			want = http.StatusOK
		}
		if w.Code != want || failure == nil || s.Stats()[0].Errors != 1 ||
			!strings.Contains(failure.Error(), "the store httplimit.referenceStore returns nonsense") {
			t.Errorf("%s: status %d, want %d, error %v", name, w.Code, want, failure)
		}
		s.Explain(request("K: k"))
	}
}

// Whatever a store answers, the limiter does not panic, and what makes no sense is a failure.
func TestNonsenseOfAStore(t *testing.T) {
	two := jsonRules("", jsonRule("a", `["header:k"]`, 5, ""), jsonRule("b", `["header:k"]`, 5, ""))
	yes := tb.Decision{Allowed: true, Remaining: 1}
	no := tb.Decision{RetryAfter: time.Second}
	bad := []tb.Decision{
		{}, {RetryAfter: -1}, {RetryAfter: math.MinInt64}, {Allowed: true, RetryAfter: 1},
		{Allowed: true, Remaining: -1}, {RetryAfter: 1, Remaining: math.MinInt},
	}
	answer := func(allowed bool, decisions ...tb.Decision) {
		t.Helper()
		all := func() ([]tb.Decision, bool) { return decisions, allowed }
		wantFailure(t, sprintf("%+v, %v", decisions, allowed), two, answers{all: all})
	}
	answer(true)
	answer(false)
	answer(true, yes)
	answer(false, no)
	answer(true, yes, yes, yes)
	answer(false, tb.Decision{}, tb.Decision{})
	answer(false, yes, yes)
	answer(true, yes, no)
	for _, d := range bad {
		answer(true, d, yes)
		answer(true, yes, d)
		answer(false, yes, d)
		if d != (tb.Decision{}) { // which was not asked
			answer(false, d, no)
			answer(false, no, d)
		}
		shadow := jsonRule("r", `["header:k"]`, 5, `"mode": "shadow"`)
		wantFailure(t, sprintf("%+v", d), shadow, answers{decision: &d})
	}
	wantFailure(t, "no charge", two, answers{noCharge: true})
	for _, mode := range []string{"enforce", "shadow"} {
		delaying := `{"name": "r", "limit_keys": ["header:k"], "on_limit": "delay", "mode": "` + mode +
			`", "max_delay": "1s", "algorithm_config": {"rps": 1, "burst": 5}}`
		for _, delay := range []time.Duration{-1, math.MinInt64, time.Second + 1, tb.Never} {
			wantFailure(t, "delay", delaying, answers{delay: &delay})
		}
	}
}

// A store may decide by a limit that the rule does not have yet, or not any more.
func TestMoreTokensThanTheBurst(t *testing.T) {
	d := tb.Decision{Allowed: true, Remaining: 9}
	for _, mode := range []string{"enforce", "shadow"} {
		s := newSite(t, jsonRule("r", "[]", 5, `"mode": "`+mode+`"`), WithStore(referenceStore{
			t: t, answers: answers{decision: &d},
		}), WithHooks(Hooks{Shadow: func(_ *http.Request, e Event) {
			if e.Remaining != 5 {
				t.Errorf("%+v", e)
			}
		}}))
		if w := s.get(); mode == "enforce" {
			wants(t, w, `RateLimit: "r";r=5;t=5`, "RateLimit-Limit: 5", "RateLimit-Remaining: 5")
		}
	}
}

// A level that makes no sense is as none.
func TestNonsenseLevels(t *testing.T) {
	for _, level := range []tb.Level{{Full: -1}, {NextToken: math.MinInt64}} {
		s := newSite(t, oneRule("[]", `"rps": 0.1, "burst": 5, "cost_source": "header:w"`), steady(),
			WithStore(referenceStore{t: t, answers: answers{level: &level}}),
			WithFields(Fields{XRateLimit: true}))
		wants(t, s.get("W: 4"), "RateLimit-Reset: 10")
		wants(t, s.get("W: 6"), "Retry-After: 50")
	}
}
