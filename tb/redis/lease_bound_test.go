package redis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// fleet is limiters with leases on one key, in simulated time. The local clock of each limiter is
// wrong by up to 0.1 %.
type fleet struct {
	limit tb.Limit
	h     time.Duration
	now   int64 // µs
	nodes []*Limiter
}

// newFleet returns false if leases do not pay.
func (s *simulator) newFleet(rng *rand.Rand) (*fleet, bool, error) {
	f := &fleet{now: noon, h: time.Duration(1+rng.Int64N(500)) * time.Millisecond}
	f.limit = tb.Limit{
		Capacity: 1 + int(magnitude(rng, 100)), Tokens: int64(magnitude(rng, 500)), Per: time.Second,
	}
	prefix := fmt.Sprint(rng.Uint64())
	for range 1 + rng.IntN(6) {
		clock := func() time.Time { return time.UnixMicro(f.now) }
		l, err := s.newLimiter(clock, f.limit, WithLease(f.h), WithPrefix(prefix))
		if err != nil {
			return nil, false, err
		}
		if !l.layout.Load().leased {
			return nil, false, nil
		}
		skew := rng.Int64N(2*drift) - drift // µs a second
		l.leases.now = func() int64 { return (f.now - noon) * (1_000_000 + skew) / 1_000_000 }
		sweepByHand(&l.leases)
		f.nodes = append(f.nodes, l)
	}
	return f, true, nil
}

// sweepByHand keeps the timer from sweeping.
func sweepByHand(ls *leases) {
	ls.sweeper.Add(1)
	ls.timer = time.AfterFunc(24*time.Hour, func() {})
}

type grant struct {
	at     int64
	tokens int
}

// run lets greedy callers call all nodes, and returns the grants. They fill leases, wait until just
// before a lease ends, and then take all that there is.
func (f *fleet) run(rng *rand.Rand, steps int) (all []grant, err error) {
	call := func(i int) (granted bool) {
		d, callErr := f.nodes[i].Allow(context.Background(), "a")
		if callErr != nil {
			err = callErr
		}
		if d.Allowed {
			all = append(all, grant{f.now, 1})
		}
		return d.Allowed
	}
	for range steps {
		i := rng.IntN(len(f.nodes))
		switch rng.IntN(6) {
		case 0:
			f.now += rng.Int64N(3 * f.h.Microseconds())
		case 1:
			f.now += rng.Int64N(100)
		case 2:
			f.nodes[i].leases.sweep(false)
		case 3:
			if n := len(f.nodes); n > 1 && rng.IntN(20) == 0 { // a node dies
				f.nodes = f.nodes[:n-1]
			}
		case 4, 5:
			for n := rng.Uint64N(magnitude(rng, uint64(f.limit.Capacity))); n > 0 && call(i); n-- {
				f.now += rng.Int64N(3)
			}
			if rng.IntN(2) == 0 {
				continue
			}
			if rng.IntN(2) == 0 { // one call brings the largest lease
				f.awaitEnd(i)
				f.now += f.h.Microseconds()
				f.enlarge(i)
				call(i)
			}
			f.awaitEnd(i)
			if rng.IntN(2) == 0 { // the lease has ended, and the bucket is full
				f.now += int64(f.limit.Capacity) * f.limit.Per.Microseconds() / f.limit.Tokens
			}
			for i := range f.nodes {
				for call(i) {
				}
			}
		}
	}
	return all, err
}

// enlarge makes the next lease of a node as large as it may be. The bound does not depend on how
// leases grow.
func (f *fleet) enlarge(i int) {
	l := f.nodes[i]
	if x, ok := l.leases.keys.Load("a"); ok && x.claim.Load() != nil {
		c := x.claim.Load()
		c.size = 2 * l.layout.Load().capacity
		c.left.Store(0) // it is not halved
	}
}

// awaitEnd waits until the last instant at which the claim of a node may be spent.
func (f *fleet) awaitEnd(i int) {
	ls := &f.nodes[i].leases
	x, ok := ls.keys.Load("a")
	if !ok || x.claim.Load() == nil {
		return
	}
	end := x.claim.Load().end
	step := (end - ls.now()) / 2
	for ; step > 0; step = (end - 1 - ls.now()) / 2 {
		f.now += step
	}
}

// excess returns by how many tokens an interval exceeds the bound C1 at most.
func (f *fleet) excess(all []grant) float64 {
	rate := float64(f.limit.Tokens) / float64(f.limit.Per.Microseconds())
	// The bound of an interval is the sum of a term of its end and a term of its begin.
	worst, begin, sum := -float64(f.limit.Capacity), 0.0, 0
	for i, g := range all {
		before := float64(sum) - rate*float64(g.at)
		if i == 0 || before < begin {
			begin = before
		}
		sum += g.tokens
		worst = max(worst, float64(sum)-rate*float64(g.at)-begin-float64(f.limit.Capacity))
	}
	return worst
}

func TestLeasesKeepTheBound(t *testing.T) {
	s := startSimulator(t, bucketsText)
	fleets := 40
	if *everything {
		fleets = 150
	}
	worst, leased := -1e9, uint64(0)
	for seed := uint64(0); fleets > 0; seed++ {
		rng := rand.New(rand.NewPCG(seed, 18))
		f, ok, err := s.newFleet(rng)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			continue
		}
		fleets--
		nodes := f.nodes
		all, err := f.run(rng, 60)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range nodes {
			leased += l.Stats().Leased
			l.Close()
		}
		worst = max(worst, f.excess(all))
	}
	t.Logf("worst excess %.6f tokens, %d calls without a command", worst, leased)
	if worst > 1e-3 || leased < 1000 {
		t.Error("the bound is exceeded, or too few calls were leased")
	}
}
