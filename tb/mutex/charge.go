package mutex

import (
	"time"

	"github.com/seed-181794aa/ratelimit/internal/check"
	"github.com/seed-181794aa/ratelimit/tb"
)

// receipt is what it takes to undo a grant: the bucket, and its state before and after.
type receipt[K comparable] struct {
	bucket        *bucket[K]
	before, after state
}

// Charge is a tb.Charge on a key's bucket, for one goroutine at a time. Do not copy it after Take.
type Charge[K comparable] struct {
	limiter *Limiter[K]
	key     K
	checks  check.Charge
	call    call       // its delay is that of the last Take
	taken   receipt[K] // of the last Take, without a bucket if it was refused, undone or settled
}

var _ tb.StoreCharge = (*Charge[string])(nil)

// Charge returns a charge of a decimal number of tokens on key's bucket. It takes nothing.
func (l *Limiter[K]) Charge(key K, cost float64) (Charge[K], error) {
	err := check.Cost(cost)
	checks := check.Charge{Err: err}
	return Charge[K]{limiter: l, key: key, checks: checks, call: call{tokens: cost}}, err
}

// MayWait implements tb.StoreCharge, as Keep, HoldOnRefusal, Delay and Level do.
func (c *Charge[K]) MayWait(within time.Duration) {
	if !c.checks.MayWait(within, c.call.keep > 0 || c.call.hold > 0) {
		return
	}
	if c.call.debt, c.call.within = nil, within; within > 0 {
		c.call.debt = deepest
	}
}

// Keep lets the charge take tokens only if the given number of tokens is left.
func (c *Charge[K]) Keep(tokens float64) {
	if c.checks.Keep(tokens, c.call.debt != nil) {
		c.call.keep = tokens
	}
}

// HoldOnRefusal lets a refusal of Take hold the bucket for a time from its reading.
func (c *Charge[K]) HoldOnRefusal(d time.Duration) {
	if c.checks.HoldOnRefusal(d, c.call.debt != nil) {
		c.call.hold = d
	}
}

// Delay returns the time from the reading of the last Take until its tokens may be used.
func (c *Charge[K]) Delay() time.Duration {
	if !c.call.Allowed {
		return 0
	}
	return c.call.delay
}

// ChargeIn is Charge in a tier. The charge is inert if the tier does not exist.
func (l *Limiter[K]) ChargeIn(tier int, key K, cost float64) (Charge[K], error) {
	c, err := l.Charge(key, cost)
	if bad := l.checkTier(tier); bad != nil {
		c.checks.Err = bad
		return c, bad
	}
	c.call.tier = tier + 1
	return c, err
}

// Peek implements tb.Charge. t is a reading of the limiter's clock.
func (c *Charge[K]) Peek(t time.Time) (tb.Decision, error) {
	if c.checks.Err != nil {
		return tb.Decision{}, c.checks.Err
	}
	look := c.call
	look.look = true
	return c.limiter.decide(c.limiter.instant(t), c.key, &look)
}

// Level returns how full the charge's bucket is at t, a reading of the limiter's clock.
func (c *Charge[K]) Level(t time.Time) (tb.Level, error) {
	return c.limiter.level(c.limiter.instant(t), c.key, &c.call)
}

// Take implements tb.Charge. t is a reading of the limiter's clock.
func (c *Charge[K]) Take(t time.Time) (tb.Decision, error) {
	l := c.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	c.end()
	if c.checks.Err != nil {
		return tb.Decision{}, c.checks.Err
	}
	err := l.spend(l.instant(t), c.key, &c.call, &c.taken)
	if c.call.Allowed && c.call.debt != nil {
		l.stats.Reservations++
	}
	return c.call.Decision, err
}

// HasClock reports whether the limiter was made with tb.WithClock, unless the charge is inert.
func (c *Charge[K]) HasClock() bool { return c.checks.Err == nil && c.limiter.settings.Now != nil }

// Enter does what a refusal of Take does, and takes nothing: it moves the key to the tier that
// ChargeIn has named, and holds the bucket for HoldOnRefusal, unless Take would be granted.
func (c *Charge[K]) Enter(t time.Time) {
	l := c.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.checks.Err != nil || l.buckets[c.key] == nil {
		return
	}
	now, call := l.instant(t), c.call
	b, m, s := l.find(now, c.key, call.tier)
	after := *s
	if m.charge(&after, now, &call); !call.Allowed {
		s = &after
	}
	l.putRefused(b, s)
}

// Cancel implements tb.Charge.
func (c *Charge[K]) Cancel() {
	l := c.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := c.end()
	if taken.bucket == nil {
		return
	}
	if c.call.debt != nil {
		l.stats.Cancellations++
	}
	l.giveBack(taken, c.call.tokens)
}

// end returns the receipt of the last Take, and forgets it. The lock is held, because a reservation
// is a charge that several goroutines may end.
func (c *Charge[K]) end() receipt[K] {
	taken := c.taken
	c.taken, c.call.delay = receipt[K]{}, 0
	return taken
}

// Settle replaces the cost of the last Take by the actual cost, as tb.Reservation.Settle does.
func (c *Charge[K]) Settle(actual float64) error {
	if err := check.Actual(actual); err != nil {
		return err
	}
	l := c.limiter
	l.mu.Lock()
	taken := c.end()
	l.mu.Unlock()
	if taken.bucket != nil {
		l.settle(c.key, c.call.tier, c.call.tokens, actual)
	}
	return nil
}
