package peers

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// outcome is what a limiter does with one call: granted, refused, fails, or "waits 1s".
type outcome string

const (
	granted outcome = "granted"
	refused outcome = "refused"
	fails   outcome = "error"
)

// got says whether the call has its tokens now, at once or after waiting.
func (o outcome) got() bool { return o == granted || strings.HasPrefix(string(o), "waits ") }

func decide(ok bool, err error) outcome {
	switch {
	case err != nil:
		return fails
	case ok:
		return granted
	}
	return refused
}

// driver makes the calls of the checks on one limiter, in its own words.
type driver struct {
	// take asks for n tokens of key's bucket, all or none.
	take func(key string, n int) outcome
	// ask makes a call that is refused, and returns how long to wait.
	ask func(key string, n int) time.Duration
	// overtaken is take, with other calls made between its reading of the clock and
	// its decision.
	overtaken func(key string, n int, others func()) outcome
}

// subject is a limiter that is checked.
type subject struct {
	name   string
	module string // whose version is in go.mod
	how    string // what is called
	new    func(w *world, limit tb.Limit, maxKeys int) driver
	// step is the resolution of the waits that it tells, if not a nanosecond.
	step time.Duration
	// over is by how many tokens it may exceed the bound when readings are late, because it
	// does so when they are not.
	over float64
	unit bool // calls have no cost
	// byHours is set for one whose time cannot be told exactly.
	byHours bool
}

// world is a bubble of testing/synctest, in which time.Now tells fake time that passes
// when somebody sleeps. Limiters that can be given the time are told it by now, which,
// unlike the bubble's clock, can go back.
type world struct {
	epoch   time.Time
	behind  atomic.Int64
	forward func(time.Duration) // tells those that see neither clock
	close   func()
}

func (w *world) now() time.Time { return time.Now().Add(-time.Duration(w.behind.Load())) }

// reading is what the clock shows, counted from the epoch.
func (w *world) reading() time.Duration { return w.now().Sub(w.epoch) }

// set makes now return the instant at after the epoch.
func (w *world) set(at time.Duration) {
	passes := at - time.Since(w.epoch)
	w.behind.Store(int64(max(0, -passes)))
	if passes > 0 {
		w.forward(passes)
		time.Sleep(passes)
	}
}

func (w *world) advance(d time.Duration) { w.set(w.reading() + d) }

// bubble runs f in a world of its own. It starts between two whole seconds, where clocks
// usually are.
func bubble(t *testing.T, f func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{forward: func(time.Duration) {}, close: func() {}}
		time.Sleep(time.Second / 2)
		w.epoch = time.Now()
		f(t, w)
		w.close()
	})
}

// ideal is the continuous bucket of the contract. The clauses C1 and C2 say that a
// limiter stays on one side of it each.
type ideal struct {
	limit  tb.Limit
	tokens float64
	at     time.Duration // the latest reading
}

func newIdeal(limit tb.Limit) *ideal {
	return &ideal{limit: limit, tokens: float64(limit.Capacity)}
}

// refill brings a reading.
func (b *ideal) refill(at time.Duration) {
	if at > b.at {
		b.tokens += float64(at-b.at) / float64(b.limit.Per) * float64(b.limit.Tokens)
		b.tokens = min(b.tokens, float64(b.limit.Capacity))
		b.at = at
	}
}

// take takes n tokens and returns how many of them the bucket did not have.
func (b *ideal) take(at time.Duration, n int) (over float64) {
	b.refill(at)
	b.tokens -= float64(n)
	return -b.tokens
}

// quantum is the smallest fraction of a token that the contract speaks of.
const quantum = 1e-6

// most is the largest cost of one call.
func (s subject) most() int {
	if s.unit {
		return 1
	}
	return 10
}

// limit is the limit of most checks.
func (s subject) limit() tb.Limit {
	if s.byHours {
		return slow
	}
	return fives
}
