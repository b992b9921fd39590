package linearizable

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/seed-181794aa/ratelimit/proof/span"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// scenario is a limiter, and the random requests of a history on it: first the prologue, and then
// the requests of several goroutines at the same time.
type scenario struct {
	limit    tb.Limit
	maxKeys  int
	overflow tb.Overflow
	bucket   bool // the limiter is a cas.Bucket
	edge     bool // the readings are near the end of a delta
	resets   bool // the one key is reset: it is not promised when others evict a reset key
	prologue []*request
	requests [][]*request // by goroutine
}

var limits = []tb.Limit{
	{Capacity: 1, Tokens: 1, Per: time.Second},
	{Capacity: 3, Tokens: 7, Per: time.Second},
	{Capacity: 10, Tokens: 3, Per: time.Minute},
	{Capacity: 5, Tokens: 999_983, Per: time.Second},
	{Capacity: 100_000_000, Tokens: 1, Per: 3 * time.Nanosecond},
}

// newTakes returns a random scenario on a table of maxKeys keys. A table of fewer than four keys
// has to evict keys.
func newTakes(rng *rand.Rand, maxKeys int) *scenario {
	s := &scenario{edge: rng.IntN(2) == 0, maxKeys: maxKeys}
	s.limit = limits[rng.IntN(len(limits))]
	s.overflow = tb.Overflow(rng.IntN(2))
	keys := 1 + rng.IntN(3)
	if maxKeys < 4 {
		keys = maxKeys + 1 + rng.IntN(2)
	}
	if s.bucket = maxKeys > 4 && rng.IntN(4) == 0; s.bucket {
		keys = 1
	}
	s.resets = keys == 1 && !s.bucket
	inserted := rng.IntN(keys + 1)
	for i := range inserted { // these keys are in the table, and some have few tokens left
		s.prologue = append(s.prologue, allow(0, key(i), 1))
	}
	now := s.toTheEdge(0, inserted, func() int { return 1 + rng.IntN(s.limit.Capacity) })
	s.requests = make([][]*request, 2+rng.IntN(7))
	for i := range s.requests {
		for range 1 + rng.IntN(2+6/len(s.requests)) {
			s.requests[i] = append(s.requests[i], s.request(rng, now, key(rng.IntN(keys))))
		}
	}
	return s
}

// newReservations returns a random scenario in which goroutines reserve tokens, cancel and settle,
// and change the limit twice at the most.
func newReservations(rng *rand.Rand) *scenario {
	s := &scenario{edge: rng.IntN(3) == 0, maxKeys: 100}
	s.limit = limits[rng.IntN(len(limits))]
	keys := 1 + rng.IntN(2)
	if s.bucket = rng.IntN(4) == 0; s.bucket {
		keys = 1
	}
	now := s.token(float64(rng.IntN(3)))
	for i := range keys {
		s.prologue = append(s.prologue, allow(0, key(i), 1+rng.IntN(s.limit.Capacity)))
	}
	now = s.toTheEdge(now, keys, func() int { return s.limit.Capacity })
	changes := rng.IntN(3)
	s.requests = make([][]*request, 2+rng.IntN(3))
	for i := range s.requests {
		for range 1 + rng.IntN(3) {
			var all []*request
			switch k := key(rng.IntN(keys)); {
			case changes > 0 && rng.IntN(4) == 0:
				changes--
				all = []*request{s.change(rng, now)}
			case rng.IntN(3) == 0:
				all = []*request{allow(s.near(rng, now), k, 1+rng.IntN(s.limit.Capacity))}
			default:
				all = s.reservation(rng, now, k)
			}
			s.requests[i] = append(s.requests[i], all...)
		}
	}
	return s
}

func key(i int) string { return strconv.Itoa(i) }

// toTheEdge returns the time around which requests are made: now, or if that is near the end of a
// delta, the end. Just before the end, it takes so many tokens of each key.
func (s *scenario) toTheEdge(now time.Duration, keys int, tokens func() int) time.Duration {
	if !s.edge {
		return now
	}
	end := span.Delta(s.limit)
	for i := range keys {
		s.prologue = append(s.prologue, allow(end-s.token(2), key(i), tokens()))
	}
	return end
}

// token returns the time in which n tokens are supplied.
func (s *scenario) token(n float64) time.Duration {
	return time.Duration(n * float64(s.limit.Per) / float64(s.limit.Tokens))
}

// request returns a random call with a reading near now.
func (s *scenario) request(rng *rand.Rand, now time.Duration, key string) *request {
	r := allow(now+s.token(4*rng.Float64()-1), key, 1)
	r.yield = rng.IntN(4) == 0
	switch rng.IntN(8) {
	case 0:
		r.at = now
	case 1: // late
		r.at = now - s.token(float64(s.limit.Capacity)*rng.Float64())
	case 2:
		r.at = now + s.token(float64(s.limit.Capacity)*rng.Float64())
	case 3:
		if s.edge && rng.IntN(2) == 0 {
			r.at += time.Duration(rng.IntN(3)-1) * span.Delta(s.limit)
		}
	}
	if rng.IntN(2) == 0 {
		r.cost = float64(1 + rng.IntN(s.limit.Capacity))
	}
	switch rng.IntN(16) {
	case 0, 1, 2:
		r.verb, r.cost = allowN, r.cost*rng.Float64()
	case 3, 4, 5:
		r.verb = peek
	case 6:
		if s.resets {
			r.verb = reset
		}
	case 7: // an impossible cost, or 0
		r.cost = float64(rng.IntN(2) * (s.limit.Capacity + 1))
	}
	return r
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
	r := allow(s.near(rng, now), key, 1+rng.IntN(s.limit.Capacity))
	r.verb, r.yield = reserve, rng.IntN(4) == 0
	then := &request{of: r, key: key, cost: float64(rng.IntN(2 * s.limit.Capacity))}
	switch rng.IntN(5) {
	case 0, 1:
		then.verb, then.at = cancel, max(r.at, s.near(rng, now))
	case 2, 3:
		then.verb, then.at = settle, s.near(rng, now)
	default:
		return []*request{r}
	}
	return []*request{r, then}
}

// moves reports whether a bucket may move while s runs.
func (s *scenario) moves() bool {
	return s.edge || slices.ContainsFunc(slices.Concat(s.requests...), func(r *request) bool {
		return r.verb == setLimit
	})
}

// play makes the calls of s on tb/cas. It returns their history, and the evictions and refusals
// that the table counted during the race.
func (s *scenario) play() (history []porcupine.Operation, raced tb.Stats) {
	stats := func() tb.Stats { return tb.Stats{} }
	l := newSession(s, func(opts ...tb.Option) (limiter, error) {
		if s.bucket {
			b, err := cas.NewBucket(s.limit, opts...)
			return bucketLimiter{b}, err
		}
		l, err := cas.New[string](s.limit, opts...)
		stats = l.Stats
		return l, err
	})
	r := newRecorder(l, len(s.requests))
	for _, in := range s.prologue {
		r.call(0, in)
	}
	before := stats()
	r.race(s.requests)
	after := stats()
	after.EvictedFull -= before.EvictedFull
	after.EvictedInDebt -= before.EvictedInDebt
	after.RefusedNew -= before.RefusedNew
	return r.history(), after
}
