package linearizable

import (
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/seed-181794aa/ratelimit/proof/span"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// mostChanges is the most SetLimits of a history.
const mostChanges = 2

// newReservations returns a random scenario in which goroutines reserve tokens, cancel and settle,
// and change the limit.
func newReservations(rng *rand.Rand) *scenario {
	s := &scenario{edge: rng.IntN(3) == 0}
	s.limit = limits[rng.IntN(len(limits))]
	s.maxKeys = 100
	keys := 1 + rng.IntN(2)
	s.bucket = rng.IntN(4) == 0
	if s.bucket {
		keys = 1
	}
	now := s.token(float64(rng.IntN(3)))
	for i := range keys {
		s.prologue = append(s.prologue, allow(0, key(i), 1+rng.IntN(s.limit.Capacity)))
	}
	if s.edge {
		now = span.Delta(s.limit)
		for i := range keys {
			s.prologue = append(s.prologue, allow(now-s.token(2), key(i), s.limit.Capacity))
		}
	}
	changes := rng.IntN(mostChanges + 1)
	s.requests = make([][]*request, 2+rng.IntN(3))
	for i := range s.requests {
		for range 1 + rng.IntN(3) {
			switch k := key(rng.IntN(keys)); {
			case changes > 0 && rng.IntN(4) == 0:
				changes--
				s.requests[i] = append(s.requests[i], s.change(rng, now))
			case rng.IntN(3) == 0:
				r := allow(s.near(rng, now), k, 1+rng.IntN(s.limit.Capacity))
				s.requests[i] = append(s.requests[i], r)
			default:
				s.requests[i] = append(s.requests[i], s.reservation(rng, now, k)...)
			}
		}
	}
	return s
}

// near returns a reading near now.
func (s *scenario) near(rng *rand.Rand, now time.Duration) time.Duration {
	switch rng.IntN(4) {
	case 0:
		return now + s.token(4*rng.Float64()-1)
	case 1:
		return now + s.token(float64(rng.IntN(4)))
	}
	return now
}

// change returns a SetLimit of another rate or another capacity.
func (s *scenario) change(rng *rand.Rand, now time.Duration) *request {
	l := s.limit
	switch rng.IntN(4) {
	case 0:
		l.Tokens = 2 * l.Tokens
	case 1:
		l.Per = 2 * l.Per
	case 2:
		l.Capacity = min(2*l.Capacity, tb.MaxCapacity)
	case 3:
		l.Capacity = 1 + l.Capacity/2
	}
	return &request{verb: setLimit, at: s.near(rng, now), limit: l, yield: rng.IntN(4) == 0}
}

// reservation returns a Reserve and perhaps a call that corrects it.
func (s *scenario) reservation(rng *rand.Rand, now time.Duration, key string) []*request {
	r := reserved(s.near(rng, now), key, 1+rng.IntN(s.limit.Capacity))
	r.yield = rng.IntN(4) == 0
	n := rng.IntN(2 * s.limit.Capacity)
	switch rng.IntN(5) {
	case 0, 1:
		return []*request{r, correction(cancel, max(r.at, s.near(rng, now)), r, 0)}
	case 2, 3:
		return []*request{r, correction(settle, s.near(rng, now), r, n)}
	}
	return []*request{r}
}

// playReservations makes the calls of s on tb/cas and returns their history.
func (s *scenario) playReservations(t *testing.T) []porcupine.Operation {
	clock := new(sharedClock)
	l := s.reserver(t, clock)
	span.Start(l)
	r := newRecorder(newSession(l), clock, len(s.requests))
	for _, in := range s.prologue {
		r.call(0, in)
	}
	r.race(s.requests)
	return r.history()
}

func (s *scenario) reserver(t *testing.T, clock *sharedClock) reserver {
	if s.bucket {
		b, err := cas.NewBucket(s.limit, s.options(clock)...)
		if err != nil {
			t.Fatal(err)
		}
		return bucketLimiter{b}
	}
	l, err := cas.New[string](s.limit, s.options(clock)...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// moves reports whether a bucket may move while s runs.
func (s *scenario) moves() bool {
	for _, requests := range s.requests {
		for _, r := range requests {
			if r.verb == setLimit {
				return true
			}
		}
	}
	return s.edge
}

// collisions counts the pairs of calls that overlapped on one key, by the verbs of the two.
type collisions struct {
	histories, buckets, reordered int
	reserves, cancels, settles    int // with a Reserve or AllowAt that was granted
	limits                        int // a SetLimit with any call that was granted
}

func (c *collisions) add(s *scenario, history []porcupine.Operation) {
	c.histories++
	if s.bucket {
		c.buckets++
	}
	m := ledgerModel(&s.setup, s.moves())
	state := m.Init()
	for _, o := range byCall(history) {
		var ok bool
		if ok, state = m.Step(state, o.Input, o.Output); !ok {
			c.reordered++
			break
		}
	}
	for _, a := range history {
		for _, b := range history {
			x, y := a.Input.(*request), b.Input.(*request)
			if x == y || a.Call >= b.Return || b.Call >= a.Return || !b.Output.(reply).Allowed {
				continue
			}
			switch {
			case x.verb == setLimit:
				c.limits++
			case x.key != y.key:
			case x.verb == reserve && a.Output.(reply).Allowed:
				c.reserves++
			case x.verb == cancel:
				c.cancels++
			case x.verb == settle:
				c.settles++
			}
		}
	}
}

// TestReservationsAreLinearizable checks random histories of tb/cas with reservations that are
// cancelled and settled, and with limits that change.
func TestReservationsAreLinearizable(t *testing.T) {
	for _, procs := range []int{1, 2, 8} {
		t.Run(strconv.Itoa(procs)+" processors", func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			least := *histories
			if testing.Short() {
				least /= 10
			}
			var c collisions
			enough := func() bool {
				some := min(c.reserves, c.cancels, c.settles, c.limits, c.buckets, c.reordered)
				return some >= least/50
			}
			for seed := 0; seed < least || !enough(); seed++ {
				if seed == 50*least {
					t.Fatalf("the histories have too few collisions: %+v", c)
				}
				s := newReservations(rand.New(rand.NewPCG(uint64(seed), 14)))
				history := s.playReservations(t)
				if !porcupine.CheckOperations(ledgerModel(&s.setup, s.moves()), history) {
					logHistory(t, &s.setup, history)
					t.Fatalf("seed %d: not linearizable", seed)
				}
				c.add(s, history)
			}
			t.Logf("%+v", c)
		})
	}
}
