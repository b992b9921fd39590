package httplimit

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// charging is a limiter of tb/mutex as a Charger.
type charging struct{ *mutex.TokenBucket }

func (c charging) Charge(key string, cost float64) (tb.Charge, error) {
	charge, err := c.TokenBucket.Charge(key, cost)
	return &charge, err
}

// Two limiters of another kind, together: a request that one refuses is free.
func TestS3ChargersTakePartInAllOrNothing(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s := newSite(t, jsonRules("", jsonRule("key", `["header:k"]`, 3, ""),
		jsonRule("all", "[]", 5, "")), WithLimiter(func(r Rule) (tb.Limiter, error) {
		l, err := mutex.New[string](r.Limit, tb.WithClock(func() time.Time { return now }))
		return charging{l}, err
	}))
	s.granted(3, "K: 1")
	for range 5 {
		s.get("K: 1")
	}
	s.granted(2, "K: 2")
	if e := s.Explain(request("K: 2")); e[0].Remaining != 0 || !e[0].Allowed || e[1].Allowed {
		t.Errorf("%+v", e)
	}
}

// Any limiter with charges answers as those of tb/cas do: here the reference.
func TestS5AnswersOfTheReferenceAreTheSame(t *testing.T) {
	config := func(name, keys, rps string, burst int) string {
		return sprintf(`{"name": %q, "limit_keys": %s, "algorithm_config": {"rps": %s, "burst": %d,
			"cost_source": "header:w"}}`, name, keys, rps, burst)
	}
	policy := jsonRules("", config("key", `["header:k"]`, "0.3", 4), config("all", "[]", "1.5", 9),
		config("slow", `["ip:address", "header:k"]`, "0.01", 30),
		jsonRule("trial", `["header:k"]`, 2, `"mode": "shadow"`))
	now := time.Unix(1_800_000_000, 0)
	clock := tb.WithClock(func() time.Time { return now })
	plug := WithLimiter(func(r Rule) (tb.Limiter, error) {
		l, err := mutex.New[string](r.Limit, clock)
		return charging{l}, err
	})
	var told [2]string
	var sites [2]http.Handler
	var limiters [2]*Limiter
	for i, o := range []Option{func(*settings) error { return nil }, plug} {
		shadow := func(_ *http.Request, e Event) { told[i] = sprintf("%+v", e) }
		limiters[i] = mustNew(t, policy, o, WithLimiterOptions(clock), WithPolicyField(), WithXRateLimit(),
			WithHooks(Hooks{Shadow: shadow}))
		sites[i] = limiters[i].Middleware(http.HandlerFunc(func(w http.ResponseWriter,
			r *http.Request) {
			d, _ := FromContext(r.Context())
			w.Write([]byte(sprintf("%+v", d)))
		}))
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	codes := map[int]int{}
	for range 3000 {
		now = now.Add(time.Duration(rnd.Int64N(int64(2 * time.Second))))
		weight := []string{"0.1", "1", "2.5", "4", "x", "1e-9", "40"}[rnd.IntN(7)]
		r := request(sprintf("K: %d", rnd.IntN(3)), "W: "+weight)
		var answers [2]string
		for i, h := range sites {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			answers[i] = sprintf("%d %v %s %+v %s", w.Code, w.Header(), w.Body, limiters[i].Explain(r),
				told[i])
			codes[w.Code]++
		}
		if answers[0] != answers[1] {
			t.Fatalf("%s\nwant %s", answers[0], answers[1])
		}
	}
	if codes[200] < 500 || codes[429] < 500 {
		t.Errorf("only %v", codes)
	}
}

// failing is a Charger that fails when it is asked for a charge, or when it is checked,
// or when it is taken.
type failing struct {
	charging
	when string
}

func (f failing) Charge(key string, cost float64) (tb.Charge, error) {
	c, err := f.charging.Charge(key, cost)
	if f.when == "charge" {
		return nil, errDown
	}
	return failingCharge{c, f.when}, err
}

type failingCharge struct {
	tb.Charge
	when string
}

func (f failingCharge) Check(t time.Time) (tb.Decision, error) {
	if f.when == "check" {
		return tb.Decision{}, errDown
	}
	return f.Charge.Check(t)
}

func (f failingCharge) Take(t time.Time) (tb.Decision, error) {
	if f.when == "take" {
		return tb.Decision{}, errDown
	}
	return f.Charge.Take(t)
}

func TestS7ChargersThatFail(t *testing.T) {
	for _, when := range []string{"charge", "check", "take"} {
		now := time.Unix(1_800_000_000, 0)
		var told []Event
		s := newSite(t, jsonRules("", jsonRule("a", "[]", 5, ""), jsonRule("b", "[]", 5, ""),
			jsonRule("c", "[]", 5, ""), jsonRule("trial", "[]", 5, `"mode": "shadow"`)),
			WithHooks(Hooks{Error: func(_ *http.Request, e Event) { told = append(told, e) }}),
			WithLimiter(func(r Rule) (tb.Limiter, error) {
				l, err := mutex.New[string](r.Limit, tb.WithClock(func() time.Time { return now }))
				if r.Name == "b" {
					return failing{charging{l}, when}, err
				}
				return charging{l}, err
			}))
		if w := s.get(); w.Code != http.StatusOK || len(w.Header()) > 0 {
			t.Errorf("%s: %d %v", when, w.Code, w.Header())
		}
		if len(told) != 1 || told[0].Rule != "b" || !errors.Is(told[0].Err, errDown) {
			t.Errorf("%s: told %+v", when, told)
		}
		for i, e := range s.Explain(request()) {
			if (i == 0 || i == 2) && e.Remaining != 4 {
				t.Errorf("%s: %s was charged: %+v", when, e.Rule, e)
			}
		}
	}
}

// One alone is not checked before it is taken.
func TestS7ChargerThatFailsAlone(t *testing.T) {
	for _, when := range []string{"charge", "take"} {
		s := newSite(t, jsonRules("", jsonRule("r", "[]", 5, "")), WithFailClosed(),
			WithLimiter(func(r Rule) (tb.Limiter, error) {
				l, err := mutex.New[string](r.Limit)
				return failing{charging{l}, when}, err
			}))
		if w := s.get(); w.Code != http.StatusServiceUnavailable || s.Stats()[0].Errors != 1 {
			t.Errorf("%s: status %d", when, w.Code)
		}
	}
}

// keeping keeps the keys that it is asked for, as a limiter may.
type keeping struct {
	charging
	keys *[]string
}

func (k keeping) AllowN(ctx context.Context, key string, n int) (tb.Decision, error) {
	*k.keys = append(*k.keys, key)
	return k.charging.AllowN(ctx, key, n)
}

func (k keeping) Charge(key string, cost float64) (tb.Charge, error) {
	*k.keys = append(*k.keys, key)
	return k.charging.Charge(key, cost)
}

func TestLimitersMayKeepKeys(t *testing.T) {
	for _, plain := range []bool{false, true} {
		var keys []string
		s := newSite(t, jsonRules("", jsonRule("r", `["header:k"]`, 5, "")),
			WithLimiter(func(r Rule) (tb.Limiter, error) {
				l, err := mutex.New[string](r.Limit)
				k := keeping{charging{l}, &keys}
				if plain {
					return struct{ tb.Limiter }{k}, err
				}
				return k, err
			}))
		for _, k := range []string{"one", "two", "six"} {
			s.get("K: " + k)
		}
		if want := []string{"\x06one", "\x06two", "\x06six"}; !slices.Equal(keys, want) {
			t.Errorf("%q", keys)
		}
	}
}

// What cannot be is not passed on to clients.
func TestS5DecisionsOfOtherLimitersAreMadeSane(t *testing.T) {
	odd := tb.Decision{RetryAfter: -5 * time.Second, Remaining: -3}
	for allowed, want := range map[bool]string{
		true: `RateLimit: "wide";r=49;t=1, "r";r=0;t=1`, false: `RateLimit: "r";r=0;t=1`,
	} {
		odd.Allowed = allowed
		s := newSite(t, jsonRules("", jsonRule("wide", "[]", 50, ""), jsonRule("r", "[]", 5, "")),
			WithLimiter(func(r Rule) (tb.Limiter, error) {
				if r.Name == "wide" {
					return nativeLimiter(r, time.Unix(1_800_000_000, 0))
				}
				return answering(odd), nil
			}))
		w := s.get()
		wants(t, w, "RateLimit-Limit: 5", "RateLimit-Remaining: 0", want)
		if (w.Code == http.StatusOK) != allowed {
			t.Errorf("status %d", w.Code)
		}
	}
}

// What a limiter without charges says is all that is known of its bucket.
func TestS5FieldsOfOtherLimiters(t *testing.T) {
	for _, c := range []struct {
		config string
		answer tb.Decision
		want   string
	}{
		{`"rps": 0.1, "burst": 5`, tb.Decision{Allowed: true, Remaining: 3}, "RateLimit-Reset: 10"},
		{`"rps": 1, "burst": 5`, tb.Decision{Allowed: true, Remaining: 3}, "RateLimit-Reset: 1"},
		{`"rps": 1, "burst": 5, "fixed_cost": 5`,
			tb.Decision{RetryAfter: 7 * time.Second, Remaining: 3}, "Retry-After: 7"},
		{`"rps": 1, "burst": 5, "fixed_cost": 8`, tb.Decision{RetryAfter: tb.Never, Remaining: 3},
			"Retry-After: 5"},
	} {
		plug := func(Rule) (tb.Limiter, error) { return answering(c.answer), nil }
		s := newSite(t, oneRule("[]", c.config), WithLimiter(plug), steady())
		wants(t, s.get(), c.want)
	}
	if d := supplyTime(tb.Limit{Capacity: 1 << 30, Tokens: 1, Per: 1e18}, 1<<30); d != tb.Never {
		t.Errorf("2³⁰ tokens take %v", d)
	}
}

// generous is a Charger whose buckets are always full.
type generous struct{ tb.Limiter }

func (generous) Charge(string, float64) (tb.Charge, error) { return generous{}, nil }

func (generous) Check(time.Time) (tb.Decision, error) {
	return tb.Decision{Allowed: true, Remaining: 5}, nil
}

func (g generous) Take(t time.Time) (tb.Decision, error) { return g.Check(t) }

func (generous) Undo() {}

func TestS5ResetIsAtLeast1(t *testing.T) {
	s := newSite(t, oneRule("[]", `"rps": 0.1, "burst": 5`),
		WithLimiter(func(Rule) (tb.Limiter, error) { return generous{}, nil }))
	wants(t, s.get(), "RateLimit-Remaining: 5", "RateLimit-Reset: 1")
}

func TestS2NoLimiterIsAnError(t *testing.T) {
	none := WithLimiter(func(Rule) (tb.Limiter, error) { return nil, nil })
	_, err := New(mustParse(t, jsonRules("", jsonRule("r", "[]", 1, ""))), none)
	if err == nil || !strings.Contains(err.Error(), `rule "r": there is no limiter`) {
		t.Error(err)
	}
}

// slow is a tb.Limiter that refuses, after a second in which somebody else has a request.
type slow struct{ meanwhile func() }

func (s slow) Allow(ctx context.Context, key string) (tb.Decision, error) {
	return s.AllowN(ctx, key, 1)
}

func (s slow) AllowN(context.Context, string, int) (tb.Decision, error) {
	s.meanwhile()
	return tb.Decision{RetryAfter: time.Second}, nil
}

// What is shared is not charged while a limiter that takes its time is asked: to give back
// afterwards would lose what came in between.
func TestS3SlowRefusalLeavesTheBucketOfOthers(t *testing.T) {
	var s *site
	s = newSite(t, jsonRules("", jsonRule("shared", "[]", 10, ""),
		jsonRule("slow", `["header:x"]`, 10, "")),
		WithLimiter(func(r Rule) (tb.Limiter, error) {
			if r.Name == "slow" {
				return slow{func() {
					s.now = s.now.Add(time.Second)
					if w := s.get(); w.Code != http.StatusOK {
						t.Errorf("another request: status %d", w.Code)
					}
				}}, nil
			}
			return cas.New[string](r.Limit, tb.WithClock(func() time.Time { return s.now }))
		}))
	for range 5 {
		s.get()
	}
	for range 5 {
		if w := s.get("X: 1"); w.Code != http.StatusTooManyRequests {
			t.Fatalf("status %d", w.Code)
		}
	}
	s.granted(5)
}
