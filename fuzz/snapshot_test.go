package fuzz

import (
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// TestRestoredLimiterGoesOn restores snapshots into new limiters, of the other implementation too.
// They decide as the limiter that goes on. So do all of them after another restore.
func TestRestoredLimiterGoesOn(t *testing.T) {
	indebted, held := 0, 0
	eachProgram(t, *programs, func(rng *rand.ChaCha8) {
		in, limit := randomInput(rng, 500), randomLimit(rand.New(rng))
		runners := make([]runner, 4) // two that go on, and two that are restored
		for i := range runners {
			r := &runners[i]
			r.now = time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC)
			clock := tb.WithClock(func() time.Time { return r.now })
			r.limiter = newLimiter(t, i%2, limit, clock)
			r.run(program{}) // all count units from the same instant
		}
		next := func(runners []runner) {
			p := program{limit: limit}
			for range 10 {
				c := in.call(restarted[:], limit, 4)
				c.step = c.step.Abs() % (limit.Per / 16) // not late: a full bucket is not saved
				p.calls = append(p.calls, c)
			}
			want := runners[0].run(p)
			for i := range runners[1:] {
				for n, got := range runners[i+1].run(p) {
					got.late, got.own, got.ownBefore = want[n].late, want[n].own, want[n].ownBefore
					if got.stats = want[n].stats; got != want[n] {
						t.Fatalf("%vcall %d, limiter %d: %+v, want %+v", p, n, i+1, got, want[n])
					}
				}
			}
		}
		next(runners[:2])
		saved := maps.Collect(runners[0].Snapshot())
		if also := maps.Collect(runners[1].Snapshot()); !maps.Equal(saved, also) {
			t.Fatalf("cas has %v, and mutex %v", saved, also)
		}
		for _, s := range saved {
			if s.Tokens < 0 {
				indebted++
			}
			if !s.Held.IsZero() {
				held++
			}
		}
		restore := func(runners []runner) {
			for i := range runners {
				if err := runners[i].Restore(maps.All(saved)); err != nil {
					t.Fatal(err)
				}
			}
		}
		now := runners[0].now.Add(in.within(limit) / 8)
		for i := range runners {
			runners[i].now = now
		}
		restore(runners[2:])
		next(runners)
		restore(runners) // which are in use by now
		next(runners)
	})
	if min(indebted, held) < *programs/10 {
		t.Errorf("%d buckets were saved in debt and %d held, too few", indebted, held)
	}
}

// newLimiter returns a limiter of tb/cas if kind is 0, and otherwise one of tb/mutex.
func newLimiter(t *testing.T, kind int, limit tb.Limit, opts ...tb.Option) limiter {
	if kind == 0 {
		l, err := cas.New[string](limit, opts...)
		if err != nil {
			t.Fatal(err)
		}
		return casLimiter{l}
	}
	l, err := mutex.New[string](limit, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return mutexLimiter{l}
}
