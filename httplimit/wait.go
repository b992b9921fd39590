package httplimit

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/httplimit/policy"
	"github.com/seed-181794aa/ratelimit/internal/hash"
	"github.com/seed-181794aa/ratelimit/tb"
)

// statusClientGone is the status of a request whose client has disconnected, as in nginx. No
// client sees it, but a log may.
const statusClientGone = 499

// waits is the requests of a limiter that wait for their tokens.
type waits struct {
	count   atomic.Int64
	stop    sync.Once
	stopped chan struct{} // closed by StopWaiting
	end     time.Time     // of all waits, once stopped is closed
}

// StopWaiting lets no request wait beyond end, from now on. A request that waits for a later time
// is decided again at once, as if its rules did not delay: most are then refused, with 429. Call it
// before http.Server.Shutdown, with an end that leaves time to serve the requests that go on until
// then. Otherwise Shutdown waits for the longest delay. Only the first call has an effect.
func (l *Limiter) StopWaiting(end time.Time) {
	l.waits.stop.Do(func() {
		l.waits.end = end
		close(l.waits.stopped)
	})
}

// mostPatience returns the longest time that a request may wait. It is 0 if that time has passed,
// or if already as many requests wait as are allowed.
func (w *waits) mostPatience(ctx context.Context, most int64) time.Duration {
	if w.count.Load() >= most {
		return 0
	}
	patience := tb.Never
	if deadline, ok := ctx.Deadline(); ok {
		patience = time.Until(deadline)
	}
	select {
	case <-w.stopped:
		patience = min(patience, time.Until(w.end))
	default:
	}
	return max(patience, 0)
}

// sleep returns granted after d, gone if the context ends before, and refused if StopWaiting
// lets no request wait for so long.
func (w *waits) sleep(ctx context.Context, d time.Duration) outcome {
	slot := time.Now().Add(d)
	timer := time.NewTimer(d)
	defer timer.Stop()
	stopped := w.stopped
	for {
		select {
		case <-timer.C:
			return granted
		case <-ctx.Done():
			return gone
		case <-stopped:
			if slot.After(w.end) {
				return refused
			}
			stopped = nil
		}
	}
}

// await keeps the request until its tokens may be used, and returns granted. If the request must
// not wait any longer, await gives its tokens back and returns refused. If the request has ended,
// await gives its tokens back and returns gone.
func (c *call) await() outcome {
	for e := range c.enforced() {
		if e.OnLimit == policy.Delay {
			e.place = e.lastPlace().Add(1)
		}
	}
	c.runHook(c.l.hooks.Delayed, c.slowest, nil)
	defer c.l.waits.count.Add(-1)
	if c.l.waits.count.Add(1) > c.policy.maxWaiting { // other requests have come first
		c.undo()
		return refused
	}
	for e := range c.enforced() {
		if e.delay > 0 {
			e.delays.waiting.Add(1)
			defer e.delays.waiting.Add(-1)
		}
	}
	o := c.l.waits.sleep(c.r.Context(), c.delay-c.l.clock().Sub(c.now))
	c.now = c.l.clock()
	for e := range c.enforced() {
		switch {
		case e.delay == 0:
		case o == granted:
			e.delays.add(e.delay)
		case o == gone:
			e.delays.hungUp.Add(1)
		}
	}
	if o != granted {
		c.undo()
	}
	return o
}

// undo gives back what the charges have taken. A charge that another one of its bucket follows
// cannot be cancelled. Clients behind it keep their slots, so its own is lost: otherwise a client
// could have the last slot again and again, and be served all at once. But the follower may be a
// settlement, or a reload may have moved the bucket. If no client is behind it, the charge is then
// settled at 0.
func (c *call) undo() {
	reloaded := c.l.policy.Load() != c.policy
	for i := len(c.entries); i > 0; i-- {
		switch e := &c.entries[i-1]; {
		case e.Shadow:
		case e.leavesLast() && (reloaded || e.price.inResponse):
			_ = e.charge.Settle(0) // a store that fails gives nothing back
		default:
			e.charge.Cancel()
		}
	}
}

// delayCounts counts the delays of a rule. One copy is enough: requests that wait have time.
type delayCounts struct {
	waiting         atomic.Int64
	delayed, hungUp atomic.Uint64
	micros          atomic.Uint64 // the sum of the delays; nanoseconds would soon overflow

	places [64]atomic.Uint64 // see lastPlace; by a hash of the key
}

// lastPlace returns the place of the last request that waits with e's key. A few other keys share
// it, so that a charge may look followed that is not. Of two requests that take their tokens at the
// same time, the later one may have the first place.
func (e *entry) lastPlace() *atomic.Uint64 {
	places := &e.delays.places
	return &places[hash.Mix(hash.Add(hash.Empty, e.key))%uint64(len(places))]
}

// leavesLast reports whether no later request waits with e's key. Then it gives e's place up, so
// that the request before it is the last.
func (e *entry) leavesLast() bool {
	return e.place == 0 || e.lastPlace().CompareAndSwap(e.place, e.place-1)
}

func (n *delayCounts) add(delay time.Duration) {
	n.delayed.Add(1)
	n.micros.Add(uint64(delay.Microseconds()))
}

// explainDelay checks e's charge again, with the delay of its rule. The decision without a delay
// has the time until the tokens may be used.
func (c *call) explainDelay(e *entry) {
	if e.OnLimit != policy.Delay || e.decision.Allowed || e.decision.RetryAfter == tb.Never {
		return
	}
	delay := e.decision.RetryAfter
	e.charge.MayWait(e.MaxDelay)
	if e.decision, _ = e.charge.Peek(c.now); e.decision.Allowed {
		e.delay = delay
	}
}

// reset returns the seconds until e's bucket has one more whole token, at least 1.
func (c *call) reset(e *entry) int64 {
	if !e.slow && e.delay == 0 {
		return 1
	}
	return ceilSeconds(c.level(e).NextToken)
}

// neverFits reports whether no wait helps. While a reload changes the limit, the decision may be
// one of the next limit.
func (e *entry) neverFits() bool {
	return e.cost > float64(e.Limit.Capacity) || e.decision.RetryAfter == tb.Never
}

// wait returns (cost − tokens)/rate, but at most 16 hours if the cost can never fit. With the
// jitter that is a day.
func (c *call) wait(e *entry) time.Duration {
	if !e.neverFits() {
		return e.decision.RetryAfter
	}
	over := max(0, e.cost-float64(e.Limit.Capacity))
	full, rest := c.level(e).Full, supplyTime(e.Limit, over)
	return min(full+min(rest, tb.Never-full), 16*time.Hour)
}

// level returns how full e's bucket is after the decision. It asks the bucket once. If the
// store fails, it returns the longest times that agree with the decision.
func (c *call) level(e *entry) tb.Level {
	if e.level != (tb.Level{}) { // which no bucket has
		return e.level
	}
	var err error
	if e.level, err = e.charge.Level(c.now); err != nil ||
		e.level.NextToken < 0 || e.level.Full < 0 { // which makes no sense
		e.level = tb.Level{Tokens: float64(e.decision.Remaining)}
		if missing := e.Limit.Capacity - e.decision.Remaining; missing > 0 {
			e.level.NextToken = supplyTime(e.Limit, 1)
			e.level.Full = supplyTime(e.Limit, float64(missing))
		}
	}
	return e.level
}

// supplyTime returns how long the rate takes to supply tokens, to the nearest nanosecond, so
// that 0.3/0.1 is 3 s and not a little more. It is tb.Never if no Duration can hold it.
func supplyTime(l tb.Limit, tokens float64) time.Duration {
	ns := math.Round(tokens / float64(l.Tokens) * float64(l.Per))
	if ns >= float64(tb.Never) {
		return tb.Never
	}
	return time.Duration(ns)
}

func ceilSeconds(d time.Duration) int64 { return int64((d-1)/time.Second) + 1 }

// retryAfter returns base and the jitter of this client: 0 to half of base, rounded up, so that
// clients that were refused together do not come back together, not even after a second. The jitter
// of a client and path is the same in every process.
func (c *call) retryAfter(base int64) int64 {
	text := func(claim string) string { return claimText(c.claim(claim)) }
	subject := cmp.Or(text("sub"), text("user_id"), text("uid"))
	a := c.l.address.Network(c.client()).As16()
	h := hash.Add(hash.Empty, c.policy.shared)
	h = hash.Add(h, subject)
	h = hash.Add(h, a[:])
	h = hash.Add(h, c.r.URL.Path)
	// The whole part of h/2⁶⁴·(half+1): each offset has about as many of the hashes as any other.
	offset, _ := bits.Mul64(hash.Mix(h), uint64(base-base/2)+1)
	return base + min(int64(offset), math.MaxInt64-base)
}
