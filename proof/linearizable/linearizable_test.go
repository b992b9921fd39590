package linearizable

import (
	"context"
	"flag"
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

var histories = flag.Int("histories", 500,
	"the least number of concurrent histories of each kind to check")

// bucketLimiter is a cas.Bucket as a limiter with one key, which is never reset.
type bucketLimiter struct{ *cas.Bucket }

func (s bucketLimiter) AllowAt(t time.Time, _ string, cost float64) (tb.Decision, error) {
	return s.Bucket.AllowAt(t, cost)
}

func (s bucketLimiter) AllowN(_ context.Context, _ string, cost float64) (tb.Decision, error) {
	return s.Bucket.AllowN(cost)
}

func (s bucketLimiter) Peek(_ context.Context, _ string) (tb.Decision, error) {
	return s.Bucket.Peek(), nil
}

func (bucketLimiter) Reset(string) { panic("a bucket has no Reset") }

// scenario has the random requests of a history: first the prologue, and then the requests of
// several goroutines at the same time.
type scenario struct {
	setup
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

// newScenario returns a random scenario on a table of maxKeys keys. A table of fewer than four
// keys has to evict keys.
func newScenario(rng *rand.Rand, maxKeys int) *scenario {
	s := &scenario{edge: rng.IntN(2) == 0}
	s.limit = limits[rng.IntN(len(limits))]
	s.maxKeys = maxKeys
	s.overflow = tb.Overflow(rng.IntN(2))
	keys := 1 + rng.IntN(3)
	if maxKeys < 4 {
		keys = maxKeys + 1 + rng.IntN(2)
	}
	s.bucket = maxKeys > 4 && rng.IntN(4) == 0
	if s.bucket {
		keys = 1
	}
	s.resets = keys == 1 && !s.bucket
	now := time.Duration(0)
	inserted := rng.IntN(keys + 1)
	for i := range inserted { // these keys are in the table, and some have few tokens left
		s.prologue = append(s.prologue, &request{at: now, key: key(i), n: 1})
	}
	if s.edge {
		now = span.Delta(s.limit)
		for i := range inserted {
			n := 1 + rng.IntN(s.limit.Capacity)
			s.prologue = append(s.prologue, &request{at: now - s.token(2), key: key(i), n: n})
		}
	}
	s.requests = make([][]*request, 2+rng.IntN(7))
	for i := range s.requests {
		for range 1 + rng.IntN(2+6/len(s.requests)) {
			s.requests[i] = append(s.requests[i], s.request(rng, now, key(rng.IntN(keys))))
		}
	}
	return s
}

func key(i int) string { return strconv.Itoa(i) }

// token returns the time in which n tokens are supplied.
func (s *scenario) token(n float64) time.Duration {
	return time.Duration(n * float64(s.limit.Per) / float64(s.limit.Tokens))
}

// request returns a random call with a reading near now.
func (s *scenario) request(rng *rand.Rand, now time.Duration, key string) *request {
	r := &request{key: key, n: 1, yield: rng.IntN(4) == 0}
	r.at = now + s.token(4*rng.Float64()-1)
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
		r.n = 1 + rng.IntN(s.limit.Capacity)
	}
	switch rng.IntN(16) {
	case 0, 1, 2:
		r.verb, r.cost = allowCost, float64(r.n)*rng.Float64()
	case 3, 4, 5:
		r.verb = peek
	case 6:
		if s.resets {
			r.verb = reset
		}
	case 7: // an impossible cost, or 0
		r.n = rng.IntN(2) * (s.limit.Capacity + 1)
	}
	return r
}

// play makes the calls of s on tb/cas. It returns their history, and the evictions and refusals
// that the table counted during the race.
func (s *scenario) play(t *testing.T) (history []porcupine.Operation, raced tb.Stats) {
	clock := new(sharedClock)
	stats := func() tb.Stats { return tb.Stats{} }
	var l limiter
	if s.bucket {
		c, err := cas.NewBucket(s.limit, s.options(clock)...)
		if err != nil {
			t.Fatal(err)
		}
		l = bucketLimiter{c}
	} else {
		c, err := cas.New[string](s.limit, s.options(clock)...)
		if err != nil {
			t.Fatal(err)
		}
		l, stats = c, c.Stats
	}
	span.Start(l)
	r := newRecorder(l, clock, len(s.requests))
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

// census counts the events that the histories of a test contain.
type census struct {
	histories, buckets int
	overlaps           int // pairs of grants on one key whose calls overlapped
	reordered          int // histories that the order of the calls does not explain
	evictedFull        int
	evictedInDebt      int
	refusedNew         int // calls refused because the table had no room for a new key
	moves              int // keys inserted at span.Origin and granted when their delta had ended
}

// add counts the history of s.
func (c *census) add(s *scenario, history []porcupine.Operation, raced tb.Stats) {
	c.histories++
	c.evictedFull += int(raced.EvictedFull)
	c.evictedInDebt += int(raced.EvictedInDebt)
	c.refusedNew += int(raced.RefusedNew)
	if s.bucket {
		c.buckets++
	}
	if !inOrderOfCall(&s.setup, history) {
		c.reordered++
	}
	moved := map[string]bool{}
	for i := range history {
		a, in := &history[i], history[i].Input.(*request)
		if in.verb == reset {
			delete(moved, in.key)
		}
		if in.verb > allowCost || !a.Output.(reply).Allowed {
			continue
		}
		moved[in.key] = moved[in.key] || s.edge && in.at >= span.Delta(s.limit)
		for _, b := range history[:i] {
			other := b.Input.(*request)
			if other.key == in.key && other.verb <= allowCost && b.Output.(reply).Allowed &&
				a.Call < b.Return && b.Call < a.Return {
				c.overlaps++
			}
		}
	}
	for i := range s.prologue {
		if r := s.prologue[i]; r.at == 0 && moved[r.key] {
			c.moves++
		}
	}
}

// TestHistoriesAreLinearizable checks random histories of tb/cas: at least as many as the flag
// -histories says, and more until enough calls have collided.
func TestHistoriesAreLinearizable(t *testing.T) {
	for _, procs := range []int{2, 8} {
		for _, maxKeys := range []int{100, 1, 3} {
			name := strconv.Itoa(procs) + " processors, " + strconv.Itoa(maxKeys) + " keys"
			t.Run(name, func(t *testing.T) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
				checkHistories(t, maxKeys)
			})
		}
	}
}

func checkHistories(t *testing.T, maxKeys int) {
	least := *histories
	if testing.Short() {
		least /= 10
	}
	enough := func(c *census) bool {
		some := min(c.overlaps, c.reordered)
		if maxKeys < 4 {
			some = min(some, c.evictedFull, c.evictedInDebt, c.refusedNew)
		} else {
			some = min(some, c.moves, c.buckets)
		}
		return some >= least/10
	}
	var c census
	for seed := 0; seed < least || !enough(&c); seed++ {
		if seed == 20*least {
			t.Fatalf("the histories have too few collisions: %+v", c)
		}
		s := newScenario(rand.New(rand.NewPCG(uint64(seed), uint64(maxKeys))), maxKeys)
		history, raced := s.play(t)
		if !linearizable(&s.setup, history) {
			logHistory(t, &s.setup, history)
			t.Fatalf("seed %d: not linearizable", seed)
		}
		c.add(s, history, raced)
	}
	t.Logf("%+v", c)
}
