package httplimit

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
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

// With two Chargers, a request that one of them refuses is free.
func TestChargersTakePartInAllOrNothing(t *testing.T) {
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

// Limiters of tb/mutex, which are Chargers here, give the same answers as limiters of tb/cas.
func TestAnswersOfTheReferenceAreTheSame(t *testing.T) {
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
	var shadows [2]string
	var sites [2]http.Handler
	var limiters [2]*Limiter
	for i, o := range []Option{func(*settings) error { return nil }, plug} {
		shadow := func(_ *http.Request, e Event) {
			e.Writer = nil
			shadows[i] = sprintf("%+v", e)
		}
		limiters[i] = mustNew(t, policy, o, WithLimiterOptions(clock), WithPolicyField(),
			WithXRateLimit(), WithHooks(Hooks{Shadow: shadow}))
		sites[i] = limiters[i].Middleware(http.HandlerFunc(func(w http.ResponseWriter,
			r *http.Request,
		) {
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
				shadows[i])
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

// keeping is a limiter that keeps the keys of its calls.
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

// Clients do not get negative numbers.
func TestDecisionsOfExternalLimitersAreClamped(t *testing.T) {
	odd := tb.Decision{RetryAfter: -5 * time.Second, Remaining: -3}
	for allowed, want := range map[bool]string{
		true: `RateLimit: "wide";r=49;t=49, "r";r=0;t=1`, false: `RateLimit: "r";r=0;t=1`,
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

// slow is a tb.Limiter that refuses, after a second in which another client has a request.
type slow struct{ meanwhile func() }

func (s slow) Allow(ctx context.Context, key string) (tb.Decision, error) {
	return s.AllowN(ctx, key, 1)
}

func (s slow) AllowN(context.Context, string, int) (tb.Decision, error) {
	s.meanwhile()
	return tb.Decision{RetryAfter: time.Second}, nil
}

// A shared bucket is not charged while a slow limiter is asked, because a Cancel afterwards would
// lose the supply of that time.
func TestSlowRefusalLeavesOtherBucketsAlone(t *testing.T) {
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

func TestRulesWithPlainLimiters(t *testing.T) {
	// Two rules have limiters with AllowN only. One rule has a limiter of tb/cas.
	var asked []string
	fail := map[string]error{}
	limiters := WithLimiter(func(r Rule) (tb.Limiter, error) {
		if r.Name == "cas" {
			return nativeLimiter(r, time.Unix(1_800_000_000, 0))
		}
		return &otherLimiter{rule: r, asked: &asked, fail: fail}, nil
	})
	s := newSite(t, jsonRules("", jsonRule("one", `["header:k"]`, 3, ""), jsonRule("cas",
		`["header:k"]`, 9, ""),
		jsonRule("two", `["header:k"]`, 2, "")), limiters)
	s.granted(2, "K: a") // and the third is refused by two
	if want := []string{
		"one 1", "two 1", "one 1", "two 1", "one 1",
		"two 1",
	}; !slices.Equal(asked, want) {
		t.Errorf("asked %v", asked)
	}
	if e := s.Explain(request("K: a")); e[1].Remaining != 9-2-1 {
		t.Errorf("what the limiter of tb/cas was charged is not given back: %+v", e[1])
	}
	for i, want := range []uint64{2, 2, 2} {
		if got := s.Stats()[i].Granted; got != want {
			t.Errorf("rule %d granted %d, want %d", i, got, want)
		}
	}
	// Plain limiters get whole tokens.
	asked = nil
	s = newSite(t, oneRule("[]", `"rps": 1, "burst": 9, "cost_source": "header:w"`), limiters)
	for _, cost := range []string{"0.1", "2.5", "3", "3e9", "1e300"} {
		s.get("W: " + cost)
	}
	if want := []string{
		"r 1", "r 3", "r 3", "r 2147483647",
		"r 2147483647",
	}; !slices.Equal(asked, want) {
		t.Errorf("asked %v", asked)
	}
	// If a limiter of tb/cas refuses, no plain limiter is asked.
	s = newSite(t, jsonRules("", jsonRule("one", `["header:k"]`, 3, ""), jsonRule("cas",
		`["header:k"]`, 1, "")), limiters)
	asked = nil
	s.granted(1, "K: a")
	if want := []string{"one 1"}; !slices.Equal(asked, want) {
		t.Errorf("asked %v", asked)
	}
	if w := s.get("K: a"); w.Header().Get("RateLimit") != `"cas";r=0;t=1` {
		t.Errorf("%v", w.Header())
	}
}
