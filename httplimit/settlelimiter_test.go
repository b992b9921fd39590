package httplimit

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// unsettled is a Charger whose charges have no Settle.
type unsettled struct{ charging }

func (u unsettled) Charge(key string, cost float64) (tb.Charge, error) {
	c, err := u.charging.Charge(key, cost)
	return struct{ tb.Charge }{c}, err
}

// slowSettler is a Charger whose charges settle after a time, or with an error.
type slowSettler struct {
	charging
	wait time.Duration
	err  error
}

type slowSettle struct {
	*mutex.Charge[string]
	slowSettler
}

func (s slowSettler) Charge(key string, cost float64) (tb.Charge, error) {
	c, err := s.TokenBucket.Charge(key, cost)
	return slowSettle{&c, s}, err
}

func (c slowSettle) Settle(actual float64) error {
	time.Sleep(c.wait)
	return errors.Join(c.err, c.Charge.Settle(actual))
}

func TestLimitersThatCannotSettle(t *testing.T) {
	for want, c := range map[string]struct {
		policy string
		wrap   func(charging) tb.Limiter
	}{
		"needs a limiter that is a Charger": {
			reporting("response:bytes", ""), func(c charging) tb.Limiter { return c.TokenBucket },
		},
		"needs charges with Settle(float64) error": {
			reporting("response:bytes", ""), func(c charging) tb.Limiter { return unsettled{c} },
		},
		"": {reporting("header:x", ""), func(c charging) tb.Limiter { return c.TokenBucket }},
		" ": {
			reporting("response:bytes", ""), func(c charging) tb.Limiter { return c },
		},
	} {
		_, err := New(mustParse(t, c.policy), WithLimiter(func(r Rule) (tb.Limiter, error) {
			l, err := mutex.New[string](r.Limit)
			return c.wrap(charging{l}), err
		}))
		if want = strings.TrimSpace(want); want == "" {
			if err != nil {
				t.Error(err)
			}
		} else if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A Charger settles as the limiters of tb/cas do. A settlement that fails or takes too long is an
// error of the rule, and does not keep the response.
func TestChargersSettle(t *testing.T) {
	for name, c := range map[string]struct {
		wait   time.Duration
		err    error
		failed bool
	}{
		"at once": {}, "slowly": {wait: 900 * time.Millisecond},
		"too slowly": {wait: 2 * time.Second, failed: true},
		"not at all": {err: errors.New("no store"), failed: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			var failures []error
			l := mustNew(t, strings.Replace(reporting("response:bytes", ""), "1,", "1e-9,", 1),
				WithHooks(Hooks{Error: func(_ *http.Request, e Event) {
					failures = append(failures, e.Err)
				}}),
				WithLimiter(func(r Rule) (tb.Limiter, error) {
					l, err := mutex.New[string](r.Limit)
					return slowSettler{charging{l}, c.wait, c.err}, err
				}))
			s := &site{t: t, Limiter: l}
			s.answer(func(w http.ResponseWriter, _ *http.Request) {
				time.Sleep(time.Minute) // far beyond the time limit of the decision
				w.Write(make([]byte, 70))
			})
			start := time.Now()
			s.get()
			if d := time.Since(start); d > time.Minute+time.Second {
				t.Errorf("%s: the request took %v", name, d)
			}
			time.Sleep(5 * time.Second)
			if st := s.Stats()[0]; (st.Errors == 1) != c.failed || (st.Settled == 0) != c.failed ||
				(len(failures) == 1) != c.failed {
				t.Errorf("%s: %+v, errors %v", name, st, failures)
			}
			if s.left() != 30 { // also if the settlement was late
				t.Errorf("%s: %v left", name, s.left())
			}
		})
	}
}
