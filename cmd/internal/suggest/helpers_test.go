package suggest

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// request is a line of a log, of a client that asks for a path by its hash. One that takes several
// tokens stands for as many at the same time.
type request struct {
	key    string
	time   int64
	tokens uint64
	path   uint32
}

// refusals returns how many requests of each key tb/mutex refuses. Each key has a limiter of its
// own, whose first reading is the first line's, as in a table that never evicts.
func refusals(t testing.TB, limit tb.Limit, log []request) map[string]uint64 {
	t.Helper()
	var now time.Time
	limiters := map[string]*mutex.TokenBucket{}
	refused := map[string]uint64{}
	for _, r := range log {
		l := limiters[r.key]
		if l == nil {
			var err error
			l, err = mutex.New[string](limit, tb.WithClock(func() time.Time { return now }))
			if err != nil {
				t.Fatal(err)
			}
			limiters[r.key] = l
			now = time.Unix(0, log[0].time)
			if _, err := l.Peek(t.Context(), r.key); err != nil {
				t.Fatal(err)
			}
		}
		now = time.Unix(0, r.time)
		d, err := l.AllowN(t.Context(), r.key, float64(r.tokens))
		if err != nil {
			t.Fatal(err)
		}
		if !d.Allowed {
			refused[r.key]++
		}
	}
	return refused
}

func withCapacity(l tb.Limit, capacity uint64) tb.Limit {
	l.Capacity = int(capacity)
	return l
}

// collected is a result and its clients by key.
type collected struct {
	*Result
	byKey map[string]uint32
}

// collect returns the result for some rates. The refused requests are counted if each takes one
// token.
func collect(log []request, rates ...tb.Limit) collected {
	timed := !slices.ContainsFunc(log, func(r request) bool { return r.tokens != 1 })
	c, byKey, paths := New(rates, timed), make(map[string]uint32), make(map[string]uint32)
	var kinds []Kind
	for _, r := range log {
		client, known := byKey[r.key]
		switch {
		case !known:
			client = uint32(len(kinds))
			kinds = append(kinds, OneRequest)
			byKey[r.key], paths[r.key] = client, r.path
		case r.path != paths[r.key]:
			kinds[client] = SeveralPaths
		case kinds[client] == OneRequest:
			kinds[client] = OnePath
		}
		if timed {
			c.Add(client, r.time)
		} else {
			c.take(client, r.time, r.tokens)
		}
	}
	return collected{c.Result(kinds), byKey}
}

// forClients returns the bursts at a rate for several shares of the clients.
func forClients(r collected, rate int, shares ...float64) (bursts []uint64) {
	for _, share := range shares {
		bursts = append(bursts, r.ForClients(rate, share))
	}
	return bursts
}

// checkNeeds checks that each client is refused nothing with the burst that it needs, and something
// with a burst of one less.
func checkNeeds(t testing.TB, limit tb.Limit, log []request) {
	t.Helper()
	r := collect(log, limit)
	for key, cl := range r.byKey {
		need := r.Need(cl, 0)
		if need <= tb.MaxCapacity {
			if n := refusals(t, withCapacity(limit, need), log)[key]; n > 0 {
				t.Fatalf("%d every %v: burst %d refuses %d requests of %s, want 0",
					limit.Tokens, limit.Per, need, n, key)
			}
		}
		if less := need - 1; less > 0 {
			if n := refusals(t, withCapacity(limit, less), log)[key]; n == 0 {
				t.Fatalf("%d every %v: burst %d refuses nothing of %s, so %d is too much",
					limit.Tokens, limit.Per, less, key, need)
			}
		}
	}
}

// randomLimit returns a limit of a rate that is often a simple one.
func randomLimit(rnd *rand.Rand) tb.Limit {
	per := []time.Duration{
		1, time.Millisecond, time.Second, time.Second, 3 * time.Second, 7 * time.Second, time.Minute,
		time.Hour, 1e9 + 7,
	}[rnd.IntN(9)]
	tokens := min(1+rnd.Int64N(9), int64(per))
	if rnd.IntN(4) == 0 {
		tokens = 1 + rnd.Int64N(int64(per))
	}
	return tb.Limit{Capacity: 1, Tokens: tokens, Per: per}
}

// randomLog returns requests about as fast as the rate, of a few keys.
func randomLog(rnd *rand.Rand, limit tb.Limit, lines int, tokens func() uint64) (log []request) {
	step := []int64{1, 1e3, 1e6, 1e9}[rnd.IntN(4)]
	mean := max(1, int64(limit.Per)/limit.Tokens/step) // steps for a token
	mean = max(1, mean*(1+rnd.Int64N(8))/(1+rnd.Int64N(8)))
	burst := 1 + rnd.IntN(30)
	now := int64(1e18) / step * step
	for range lines {
		if rnd.IntN(burst) == 0 {
			now += step * rnd.Int64N(2*mean*int64(burst)+1)
		}
		log = append(log, request{string('a' + rune(rnd.IntN(3))), now, tokens(), 0})
	}
	return log
}
