package linearizable

import (
	"context"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/proof/span"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// wrong is a wrong limiter of ten tokens a key, refilled at one token a second. Tests call only
// its AllowAt.
type wrong func(at time.Duration, key string, n int) tb.Decision

func (w wrong) AllowAt(t time.Time, key string, cost float64) (tb.Decision, error) {
	return w(t.Sub(span.Origin), key, int(cost)), nil
}

func (wrong) AllowN(context.Context, string, float64) (tb.Decision, error) { panic("called") }
func (wrong) Peek(context.Context, string) (tb.Decision, error)            { panic("called") }
func (wrong) Reset(string)                                                 { panic("called") }

// simpleBucket is a correct bucket of such a limiter. Its tokens are counted in the time that
// supplies them. It agrees with the oracle at readings of whole milliseconds.
type simpleBucket struct{ tokens, at time.Duration }

const capacity = 10 * time.Second

func (b simpleBucket) take(at time.Duration, n int) (simpleBucket, tb.Decision) {
	if at > b.at {
		b = simpleBucket{min(capacity, b.tokens+at-b.at), at}
	}
	cost := time.Duration(n) * time.Second
	if b.tokens < cost {
		return b, tb.Decision{
			RetryAfter: b.at + cost - b.tokens - at, Remaining: int(b.tokens / time.Second),
		}
	}
	b.tokens -= cost
	return b, tb.Decision{Allowed: true, Remaining: int(b.tokens / time.Second)}
}

// loadThenStore loses a grant that comes between its two steps.
func loadThenStore(stop func()) wrong {
	bucket := simpleBucket{capacity, 0}
	return func(at time.Duration, _ string, n int) tb.Decision {
		next, d := bucket.take(at, n)
		stop()
		if d.Allowed {
			bucket = next
		}
		return d
	}
}

// timeMovesBack sets its time to the reading of a grant even if the reading is late, so that it
// credits the time since that reading again.
func timeMovesBack(func()) wrong {
	bucket := simpleBucket{capacity, 0}
	return func(at time.Duration, _ string, n int) tb.Decision {
		next, d := bucket.take(at, n)
		if d.Allowed {
			bucket = simpleBucket{next.tokens, at}
		}
		return d
	}
}

// refusalMovesTime writes the time of a refusal, and later calls are decided at that time.
func refusalMovesTime(func()) wrong {
	bucket := simpleBucket{capacity, 0}
	return func(at time.Duration, _ string, n int) (d tb.Decision) {
		bucket, d = bucket.take(at, n)
		return d
	}
}

// evictedIsSpent has a table of one key. A caller that has found a bucket may take from it after
// it was evicted.
func evictedIsSpent(stop func()) wrong {
	var holder string
	var bucket *simpleBucket
	return func(at time.Duration, key string, n int) (d tb.Decision) {
		if key != holder {
			holder, bucket = key, &simpleBucket{capacity, at}
		}
		found := bucket
		stop()
		*found, d = found.take(at, n)
		return d
	}
}

// nothingWrong is tb/cas, stopped before each call.
func nothingWrong(t *testing.T, s *setup, stop func()) wrong {
	l, err := cas.New[string](s.limit, s.options(new(sharedClock))...)
	if err != nil {
		t.Fatal(err)
	}
	span.Start(l)
	return func(at time.Duration, key string, n int) tb.Decision {
		stop()
		d, _ := l.AllowAt(span.Origin.Add(at), key, float64(n))
		return d
	}
}

// allow returns a call of AllowAt.
func allow(t time.Duration, key string, n int) *request { return &request{at: t, key: key, n: n} }

// In each script one goroutine makes its calls one after another. In its last call it is
// stopped while another goroutine makes one call.
var scripts = []struct {
	name     string
	overflow tb.Overflow
	calls    []*request
	other    *request
	wrong    func(stop func()) wrong
}{
	{
		"load then store", tb.ForgiveLeast,
		[]*request{allow(0, "a", 3), allow(time.Second, "a", 4)},
		allow(2*time.Second, "a", 5), loadThenStore,
	},
	{
		"time moves back", tb.ForgiveLeast,
		[]*request{
			allow(10*time.Second, "a", 9), allow(5*time.Second, "a", 1), allow(10*time.Second, "a", 5),
		},
		nil, timeMovesBack,
	},
	{
		"a refusal moves time", tb.ForgiveLeast,
		[]*request{allow(0, "a", 10), allow(9*time.Second, "a", 10), allow(time.Second, "a", 5)},
		nil, refusalMovesTime,
	},
	{
		"an evicted bucket is spent", tb.RefuseNew,
		[]*request{allow(0, "a", 1), allow(100*time.Second, "a", 10)},
		allow(100*time.Second, "b", 1), evictedIsSpent,
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
				r := newRecorder(l, new(sharedClock), 2)
				for i, in := range script.calls {
					if i == len(script.calls)-1 && script.other != nil {
						during = func() { r.call(1, script.other) }
					}
					r.call(0, in)
				}
				if linearizable(&s, r.history()) != right {
					logHistory(t, &s, r.history())
					t.Errorf("linearizable: %v, want %v", !right, right)
				}
			}
		})
	}
}

// TestSpanIsWhereBucketsMove checks package span, on which the census of moves relies. A hit
// allocates only if it moves its bucket.
func TestSpanIsWhereBucketsMove(t *testing.T) {
	for _, limit := range limits {
		for _, moves := range []bool{false, true} {
			l, err := cas.New[string](limit, tb.WithClock(new(sharedClock).read))
			if err != nil {
				t.Fatal(err)
			}
			span.Start(l)
			at := span.Origin.Add(span.Delta(limit))
			if !moves {
				at = span.Origin.Add(span.Delta(limit) - span.Delta(limit)/1000)
			}
			keys := make([]string, 0, 101) // one for the warm-up
			for i := range cap(keys) {
				keys = append(keys, key(i))
				_, _ = l.AllowAt(span.Origin, keys[i], float64(limit.Capacity))
			}
			i := 0
			allocated := testing.AllocsPerRun(len(keys)-1, func() {
				_, _ = l.AllowAt(at, keys[i], float64(limit.Capacity))
				i++
			})
			if (allocated > 0) != moves {
				t.Errorf("limit %+v: %v allocations a grant at %v", limit, allocated, at.Sub(span.Origin))
			}
		}
	}
}
