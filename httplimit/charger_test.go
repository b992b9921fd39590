package httplimit

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
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
		limiters[i] = mustNew(t, policy, o, WithCore(clock), WithPolicyField(), WithXRateLimit(),
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

// What cannot be is not passed on to clients.
func TestS5DecisionsOfOtherLimitersAreMadeSane(t *testing.T) {
	odd := tb.Decision{RetryAfter: -5 * time.Second, Remaining: -3}
	for _, allowed := range []bool{true, false} {
		odd.Allowed = allowed
		s := newSite(t, jsonRules("", jsonRule("r", "[]", 5, "")),
			WithLimiter(func(Rule) (tb.Limiter, error) { return answering(odd), nil }))
		w := s.get()
		wants(t, w, "RateLimit-Remaining: 0", `RateLimit: "r";r=0;t=1`)
		if (w.Code == http.StatusOK) != allowed {
			t.Errorf("status %d", w.Code)
		}
	}
}

func TestS2NoLimiterIsAnError(t *testing.T) {
	none := WithLimiter(func(Rule) (tb.Limiter, error) { return nil, nil })
	_, err := New(mustParse(t, jsonRules("", jsonRule("r", "[]", 1, ""))), none)
	if err == nil || !strings.Contains(err.Error(), `rule "r": there is no limiter`) {
		t.Error(err)
	}
}
