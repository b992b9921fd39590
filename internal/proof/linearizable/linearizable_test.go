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

	"github.com/seed-181794aa/ratelimit/internal/proof/span"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

var histories = flag.Int("histories", 2000,
	"how many concurrent histories of each kind to check, at least")

// single is a cas.Bucket as a limiter of one key, which is never reset.
type single struct{ *cas.Bucket }

func (s single) AllowAt(t time.Time, _ string, n int) (tb.Decision, error) {
	return s.Bucket.AllowAt(t, n)
}

func (s single) AllowCost(ctx context.Context, _ string, cost float64) (tb.Decision, error) {
	return s.Bucket.AllowCost(ctx, cost)
}

func (s single) Peek(ctx context.Context, _ string) (tb.Decision, error) {
	return s.Bucket.Peek(ctx)
}

func (single) Reset(string) { panic("a bucket has no Reset") }

// scene is a random history to be: what is asked first, and what is then asked at the
// same time.
type scene struct {
	setup
	bucket   bool // a cas.Bucket
	edge     bool // the readings are about where the delta runs out
	prologue []*request
	requests [][]*request
}

var limits = []tb.Limit{
	{Capacity: 1, Tokens: 1, Per: time.Second},
	{Capacity: 3, Tokens: 7, Per: time.Second},
	{Capacity: 10, Tokens: 3, Per: time.Minute},
	{Capacity: 5, Tokens: 999_983, Per: time.Second},
	{Capacity: 100_000_000, Tokens: 1, Per: 3 * time.Nanosecond},
}

// newScene returns a random scene on a table with few places, or with places enough.
func newScene(rng *rand.Rand, places int) *scene {
	s := &scene{edge: rng.IntN(2) == 0}
	s.limit = limits[rng.IntN(len(limits))]
	s.maxKeys = places
	s.overflow = tb.Overflow(rng.IntN(2))
	keys := 1 + rng.IntN(3)
	if places < 4 {
		keys = places + 1 + rng.IntN(2)
	}
	s.bucket = places > 4 && rng.IntN(4) == 0
	if s.bucket {
		keys = 1
	}
	now := time.Duration(0)
	spent := rng.IntN(keys + 1)
	for i := range spent { // of these keys the buckets are there, and some are drained
		s.prologue = append(s.prologue, &request{at: now, key: key(i), n: 1})
	}
	if s.edge {
		now = span.Of(s.limit)
		for i := range spent {
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

// token is the time that so many tokens take.
func (s *scene) token(n float64) time.Duration {
	return time.Duration(n * float64(s.limit.Per) / float64(s.limit.Tokens))
}

// request returns a random call, at about now.
func (s *scene) request(rng *rand.Rand, now time.Duration, key string) *request {
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
			r.at += time.Duration(rng.IntN(3)-1) * span.Of(s.limit)
		}
	}
	if rng.IntN(2) == 0 {
		r.n = 1 + rng.IntN(s.limit.Capacity)
	}
	switch rng.IntN(16) {
	case 0, 1, 2:
		r.verb, r.cost = takeCost, float64(r.n)*rng.Float64()
	case 3, 4, 5:
		r.verb = look
	case 6:
		if !s.bucket {
			r.verb = forget
		}
	case 7: // impossible, or no cost at all
		r.n = rng.IntN(2) * (s.limit.Capacity + 1)
	}
	return r
}

// play makes the calls of s on tb/cas. It also returns what the table counted while they
// raced.
func (s *scene) play(t *testing.T) (history []porcupine.Operation, raced tb.Stats) {
	b := new(baton)
	stats := func() tb.Stats { return tb.Stats{} }
	var l keyed
	if s.bucket {
		c, err := cas.NewBucket(s.limit, s.options(b)...)
		if err != nil {
			t.Fatal(err)
		}
		l = single{c}
	} else {
		c, err := cas.New[string](s.limit, s.options(b)...)
		if err != nil {
			t.Fatal(err)
		}
		l, stats = c, c.Stats
	}
	span.Start(l)
	r := newRecorder(l, b, len(s.requests))
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

// census counts what the histories of a test were made of.
type census struct {
	histories, buckets int
	overlaps           int // pairs of grants on one key whose calls overlapped
	reordered          int // histories that the order of the calls does not explain
	evictedFull        int
	evictedInDebt      int
	turnedAway         int // calls refused because a new key found no room
	moves              int // keys that were created at the first reading and granted beyond the span
}

// add counts the history of s.
func (c *census) add(s *scene, history []porcupine.Operation, raced tb.Stats) {
	c.histories++
	c.evictedFull += int(raced.EvictedFull)
	c.evictedInDebt += int(raced.EvictedInDebt)
	c.turnedAway += int(raced.RefusedNew)
	if s.bucket {
		c.buckets++
	}
	if !inOrderOfCall(&s.setup, history) {
		c.reordered++
	}
	moved := map[string]bool{}
	for i := range history {
		a, in := &history[i], history[i].Input.(*request)
		if in.verb == forget {
			delete(moved, in.key)
		}
		if in.verb > takeCost || !a.Output.(reply).Allowed {
			continue
		}
		moved[in.key] = moved[in.key] || s.edge && in.at >= span.Of(s.limit)
		for _, b := range history[:i] {
			other := b.Input.(*request)
			if other.key == in.key && other.verb <= takeCost && b.Output.(reply).Allowed &&
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

// TestHistoriesAreLinearizable checks random histories of tb/cas, at least as many as the
// flag says, and more until they have collided often enough to mean something.
func TestHistoriesAreLinearizable(t *testing.T) {
	for _, procs := range []int{2, 8} {
		for _, places := range []int{100, 1, 3} {
			name := strconv.Itoa(procs) + " processors, " + strconv.Itoa(places) + " keys"
			t.Run(name, func(t *testing.T) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
				checkHistories(t, places)
			})
		}
	}
}

func checkHistories(t *testing.T, places int) {
	least := *histories
	if testing.Short() {
		least /= 10
	}
	enough := func(c *census) bool {
		some := min(c.overlaps, c.reordered)
		if places < 4 {
			some = min(some, c.evictedFull, c.evictedInDebt, c.turnedAway)
		} else {
			some = min(some, c.moves, c.buckets)
		}
		return some >= least/10
	}
	var c census
	for seed := 0; seed < least || !enough(&c); seed++ {
		if seed == 20*least {
			t.Fatalf("too few collisions: %+v", c)
		}
		s := newScene(rand.New(rand.NewPCG(uint64(seed), uint64(places))), places)
		history, raced := s.play(t)
		if !linearizable(&s.setup, history) {
			report(t, &s.setup, history)
			t.Fatalf("seed %d: not linearizable", seed)
		}
		c.add(s, history, raced)
	}
	t.Logf("%+v", c)
}
