package linearizable

import (
	"context"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/proof/span"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// wrong is a limiter of ten tokens a key, one a second, that is only asked with AllowAt.
type wrong func(at time.Duration, key string, n int) tb.Decision

func (w wrong) AllowAt(t time.Time, key string, n int) (tb.Decision, error) {
	return w(t.Sub(span.Origin), key, n), nil
}

func (wrong) AllowCost(context.Context, string, float64) (tb.Decision, error) { panic("asked") }
func (wrong) Peek(context.Context, string) (tb.Decision, error)               { panic("asked") }
func (wrong) Reset(string)                                                    { panic("asked") }

// level is a bucket of it: so many seconds' worth of tokens at an instant. It is right, and
// agrees with the oracle at readings of whole milliseconds.
type level struct{ tokens, at time.Duration }

const fullLevel = 10 * time.Second

func (l level) take(at time.Duration, n int) (level, tb.Decision) {
	if at > l.at {
		l = level{min(fullLevel, l.tokens+at-l.at), at}
	}
	cost := time.Duration(n) * time.Second
	if l.tokens < cost {
		return l, tb.Decision{
			RetryAfter: l.at + cost - l.tokens - at, Remaining: int(l.tokens / time.Second),
		}
	}
	l.tokens -= cost
	return l, tb.Decision{Allowed: true, Remaining: int(l.tokens / time.Second)}
}

// loadThenStore forgets what is taken between its two steps.
func loadThenStore(stop func()) wrong {
	bucket := level{fullLevel, 0}
	return func(at time.Duration, _ string, n int) tb.Decision {
		next, d := bucket.take(at, n)
		stop()
		if d.Allowed {
			bucket = next
		}
		return d
	}
}

// timeMovesBack takes the reading of a grant for its time even if it is late, so that the
// time since then is credited again.
func timeMovesBack(func()) wrong {
	bucket := level{fullLevel, 0}
	return func(at time.Duration, _ string, n int) tb.Decision {
		next, d := bucket.take(at, n)
		if d.Allowed {
			bucket = level{next.tokens, at}
		}
		return d
	}
}

// refusalMovesTime writes the time of a refusal, for others to be decided on.
func refusalMovesTime(func()) wrong {
	bucket := level{fullLevel, 0}
	return func(at time.Duration, _ string, n int) (d tb.Decision) {
		bucket, d = bucket.take(at, n)
		return d
	}
}

// evictedIsSpent has a table of one key, and lets a caller who found a bucket there spend
// it after it was evicted.
func evictedIsSpent(stop func()) wrong {
	var holder string
	var bucket *level
	return func(at time.Duration, key string, n int) (d tb.Decision) {
		if key != holder {
			holder, bucket = key, &level{fullLevel, at}
		}
		found := bucket
		stop()
		*found, d = found.take(at, n)
		return d
	}
}

// nothingWrong is tb/cas, stopped before it does anything.
func nothingWrong(t *testing.T, s *setup, stop func()) wrong {
	l, err := cas.New[string](s.limit, s.options(new(baton))...)
	if err != nil {
		t.Fatal(err)
	}
	span.Start(l)
	return func(at time.Duration, key string, n int) tb.Decision {
		stop()
		d, _ := l.AllowAt(span.Origin.Add(at), key, n)
		return d
	}
}

func at(t time.Duration, key string, n int) *request { return &request{at: t, key: key, n: n} }

// In each script one goroutine makes its calls one after another, and is stopped in the
// last of them while another goroutine makes one call.
var scripts = []struct {
	name     string
	overflow tb.Overflow
	calls    []*request
	other    *request
	wrong    func(stop func()) wrong
}{
	{
		"load then store", tb.ForgiveLeast,
		[]*request{at(0, "a", 3), at(time.Second, "a", 4)},
		at(2*time.Second, "a", 5), loadThenStore,
	},
	{
		"time moves back", tb.ForgiveLeast,
		[]*request{
			at(10*time.Second, "a", 9), at(5*time.Second, "a", 1), at(10*time.Second, "a", 5),
		},
		nil, timeMovesBack,
	},
	{
		"a refusal moves time", tb.ForgiveLeast,
		[]*request{at(0, "a", 10), at(9*time.Second, "a", 10), at(time.Second, "a", 5)},
		nil, refusalMovesTime,
	},
	{
		"an evicted bucket is spent", tb.RefuseNew,
		[]*request{at(0, "a", 1), at(100*time.Second, "a", 10)},
		at(100*time.Second, "b", 1), evictedIsSpent,
	},
}

func TestWrongLimitersAreNotLinearizable(t *testing.T) {
	for _, script := range scripts {
		t.Run(script.name, func(t *testing.T) {
			s := setup{tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second}, 1, script.overflow}
			for _, right := range []bool{true, false} {
				var during func()
				stop := func() {
					if f := during; f != nil {
						during = nil
						f()
					}
				}
				l := script.wrong(stop)
				if right {
					l = nothingWrong(t, &s, stop)
				}
				r := newRecorder(l, new(baton), 2)
				for i, in := range script.calls {
					if i == len(script.calls)-1 && script.other != nil {
						during = func() { r.call(1, script.other) }
					}
					r.call(0, in)
				}
				if linearizable(&s, r.history()) != right {
					report(t, &s, r.history())
					t.Errorf("right is %v, and the checker says otherwise", right)
				}
			}
		})
	}
}

// The census of moves relies on where buckets move: nothing else on a hit allocates.
func TestSpanIsWhereBucketsMove(t *testing.T) {
	for _, limit := range limits {
		for _, moves := range []bool{false, true} {
			l, err := cas.New[string](limit, tb.WithClock(new(baton).read))
			if err != nil {
				t.Fatal(err)
			}
			span.Start(l)
			at := span.Origin.Add(span.Of(limit))
			if !moves {
				at = span.Origin.Add(span.Of(limit) - span.Of(limit)/1000)
			}
			keys := make([]string, 0, 11) // one for the warm-up
			for i := range cap(keys) {
				keys = append(keys, key(i))
				_, _ = l.AllowAt(span.Origin, keys[i], limit.Capacity)
			}
			i := 0
			allocated := testing.AllocsPerRun(len(keys)-1, func() {
				_, _ = l.AllowAt(at, keys[i], limit.Capacity)
				i++
			})
			if (allocated > 0) != moves {
				t.Errorf("limit %+v: %v allocations a grant at %v", limit, allocated, at.Sub(span.Origin))
			}
		}
	}
}
