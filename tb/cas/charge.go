package cas

import (
	"time"

	"github.com/seed-181794aa/ratelimit/internal/check"
	"github.com/seed-181794aa/ratelimit/tb"
)

// part is what the charges of a Limiter and of a Bucket have in common.
// A Reservation is one too, and a call of Wait.
type part[H home] struct {
	home   H
	checks check.Charge
	request
	delay   time.Duration // of the last Take: the wait for the tokens, or the one that was refused
	receipt receipt       // of the last Take, zero if it was refused, cancelled or settled
}

// MayWait lets the charge put the bucket into debt, as Wait does, if the tokens can be used within
// the given time from the reading of Take. Take then grants what it would refuse, and Delay returns
// the wait. With 0, the charge does not wait. With a negative time it is inert from then on, with a
// *tb.ConfigError: see tb.Charge.
func (p *part[H]) MayWait(within time.Duration) {
	if p.checks.MayWait(within, p.keep > 0 || p.hold > 0) {
		p.within = within
	}
}

// Keep lets the next Takes take the cost only if a number of tokens is left then. So others may
// have these tokens when the charge is refused. RetryAfter is the time until the bucket holds both.
// Remaining and Level are what the charge may take: that number less, and at least 0. With 0, the
// charge keeps nothing.
//
// The charge is inert from then on if the number is negative, NaN or infinite, with
// tb.ErrInvalidCost, or if the charge may wait, with a *tb.ConfigError: a slot at which tokens are
// left would give them out before it. MayWait after Keep makes it inert too.
func (p *part[H]) Keep(tokens float64) {
	if p.checks.Keep(tokens, p.within > 0) {
		p.keep = tokens
	}
}

// HoldOnRefusal lets the next Takes, if they are refused, hold the bucket for a time from their
// reading, as Limiter.Hold does. RetryAfter is then the time until the bucket pays behind the hold.
// In tb.TakeAll, each charge whose own bucket lacks the tokens holds it. A bucket that is held
// already, a cost that can never be granted and a full table hold nothing. With 0, a refusal holds
// nothing.
//
// The charge is inert from then on if the time is negative, or if the charge may wait, with a
// *tb.ConfigError. MayWait after HoldOnRefusal makes it inert too.
func (p *part[H]) HoldOnRefusal(d time.Duration) {
	if p.checks.HoldOnRefusal(d, p.within > 0) {
		p.hold = d
	}
}

// Delay returns the time from the reading of the last Take until its tokens may be used. It is 0
// if that Take was refused, cancelled or settled.
func (p *part[H]) Delay() time.Duration {
	if p.receipt.cell == nil {
		return 0
	}
	return p.delay
}

// Level returns how full the bucket is at t, a reading of its clock, less the tokens that the
// charge keeps. The error is always nil for a Bucket.
func (p *part[H]) Level(t time.Time) (tb.Level, error) {
	return level(p.home, p.home.times().instant(t), p.keep)
}

// HasClock reports whether the limiter or the bucket was made with tb.WithClock, so that Take needs
// a reading of that clock. It is false if the charge is inert, because then no reading matters.
func (p *part[H]) HasClock() bool { return p.checks.Err == nil && p.home.times().now != nil }

// Enter does what a refused Take does, and takes nothing: it moves the key to the tier that
// ChargeIn has named, unless it is in that tier or not in the table, and holds the bucket for
// HoldOnRefusal, unless Take would be granted. tb.TakeAll calls it if Peek has refused the charge.
// t is a reading of the clock of the bucket.
func (p *part[H]) Enter(t time.Time) {
	if p.checks.Err != nil || p.hold == 0 && !p.home.entersTier() {
		return
	}
	at := p.home.times().instant(t)
	visit(p.home, p.home.load(), at, func(m *layout, c *cell, has balance) (balance, bool) {
		next, o := p.decide(m, has, at)
		if !o.Allowed && next.until != has.until {
			return next, true
		}
		return has, tierOf(m.owner) != c.tier()
	})
}

// take takes p at t, by the fast path if it can. c is what the bucket's cell has been, or nil.
func (p *part[H]) take(c *cell, t uint64) (tb.Decision, error) {
	p.receipt = receipt{}
	if c != nil && p.keep == 0 {
		m := p.home.layoutOf(c)
		d, before, after, ok := c.take(m, t, m.unitsOf(p.tokens))
		if d.Allowed {
			p.receipt, p.delay = receipt{c, m, before, after}, 0
			return d, nil
		}
		if ok && p.isPlain() {
			p.delay = d.RetryAfter
			return d, nil
		}
	}
	o, r, err := spend(p.home, t, p.request)
	p.receipt, p.delay = r, o.delay
	return o.Decision, err
}

// Cancel implements tb.Charge. It gives nothing back to a bucket that was evicted, or moved to a
// new base, since Take.
func (p *part[H]) Cancel() {
	if p.receipt.cell == nil {
		return
	}
	if p.within > 0 {
		p.home.shared().cancellations.Add(1)
	}
	p.receipt.giveBack(p.tokens)
	p.receipt = receipt{}
}

// Settle replaces the cost of the last Take by the actual cost, as tb.Reservation.Settle does. It
// does nothing if that Take was refused, cancelled or settled.
func (p *part[H]) Settle(actual float64) error { return p.settle(p.home, actual) }

func (p *part[H]) settle(h H, actual float64) error {
	if err := check.Actual(actual); err != nil {
		return err
	}
	if p.receipt.cell != nil {
		settle(h, p.tokens, actual)
		p.receipt = receipt{}
	}
	return nil
}

// Charge is a cost to take from a key's bucket as one part of tb.TakeAll. Its address is a
// tb.Charge, an interface that package ratelimit calls Charge; there this type is KeyCharge. Only
// one goroutine at a time may use it. It must not be copied after its first Take: each copy would
// give the tokens back. The zero Charge has no bucket: HasClock, Peek, Take and Level of it panic.
type Charge[K comparable] struct {
	part[place[K]]
	checked *cell // that Peek has found, so that Take need not look it up
}

var _ tb.Charge = (*Charge[string])(nil)

// Charge returns a charge on key's bucket. It takes nothing and allocates nothing. With an invalid
// cost the charge is inert: see tb.Charge.
func (l *Limiter[K]) Charge(key K, cost float64) (Charge[K], error) {
	err := check.Cost(cost)
	home, checks := place[K]{Limiter: l, key: key}, check.Charge{Err: err}
	return Charge[K]{
		part: part[place[K]]{home: home, checks: checks, request: request{tokens: cost}},
	}, err
}

// ChargeIn is Charge in a tier. The next Take, or a TakeAll that refuses the charge, moves the key
// to that tier. It returns a *tb.ConfigError, and an inert charge, if the tier does not exist.
func (l *Limiter[K]) ChargeIn(tier int, key K, cost float64) (Charge[K], error) {
	c, err := l.Charge(key, cost)
	if bad := l.limits.checkTier(tier); bad != nil {
		c.checks.Err = bad
		return c, bad
	}
	c.home.tier, c.home.enters = tier, true
	return c, err
}

// Peek implements tb.Charge. t is a reading of the limiter's clock.
func (c *Charge[K]) Peek(t time.Time) (tb.Decision, error) {
	if c.checks.Err != nil {
		return tb.Decision{}, c.checks.Err
	}
	c.checked, c.home.at = c.home.table.Recent(c.home.key)
	m, at := c.home.layoutOf(c.checked), c.home.clock.instant(t)
	return peek(c.home, c.checked, m, at, &c.request)
}

// Take implements tb.Charge. t is a reading of the limiter's clock.
func (c *Charge[K]) Take(t time.Time) (tb.Decision, error) {
	if c.checks.Err != nil {
		c.receipt = receipt{}
		return tb.Decision{}, c.checks.Err
	}
	target := c.checked
	if target == nil {
		target, c.home.at = c.home.table.Recent(c.home.key)
	}
	d, err := c.take(target, c.home.clock.instant(t))
	if d.Allowed {
		c.home.table.Remember(c.home.at.Hash, c.receipt.cell, wins(c.receipt.after))
		if c.within > 0 {
			c.home.limits.reservations.Add(1)
		}
	}
	return d, err
}

// Settle replaces the cost of the last Take by the actual cost, as tb.Reservation.Settle does. It
// does nothing if that Take was refused, cancelled or settled. The key stays in its tier. If it has
// left the table since, what is charged makes a bucket in the tier that ChargeIn has named, or in
// tier 0.
func (c *Charge[K]) Settle(actual float64) error {
	p := c.home
	p.enters = false // the key may have changed its tier since
	return c.settle(p, actual)
}

// BucketCharge is a cost to take from a Bucket as one part of tb.TakeAll. Its address is a
// tb.Charge. Only one goroutine at a time may use it. As a Charge, it must not be copied after its
// first Take, and the zero BucketCharge has no bucket: HasClock, Peek, Take and Level panic.
type BucketCharge struct{ part[*Bucket] }

var _ tb.Charge = (*BucketCharge)(nil)

// Charge returns a charge on the bucket. It takes nothing and allocates nothing. With an invalid
// cost the charge is inert: see tb.Charge.
func (b *Bucket) Charge(cost float64) (BucketCharge, error) {
	err := check.Cost(cost)
	checks := check.Charge{Err: err}
	return BucketCharge{part[*Bucket]{home: b, checks: checks, request: request{tokens: cost}}}, err
}

// Peek implements tb.Charge. t is a reading of the bucket's clock.
func (c *BucketCharge) Peek(t time.Time) (tb.Decision, error) {
	if c.checks.Err != nil {
		return tb.Decision{}, c.checks.Err
	}
	at := c.home.clock.instant(t)
	return peek(c.home, c.home.load(), c.home.layout(), at, &c.request)
}

// Take implements tb.Charge. t is a reading of the bucket's clock.
func (c *BucketCharge) Take(t time.Time) (tb.Decision, error) {
	if c.checks.Err != nil {
		c.receipt = receipt{}
		return tb.Decision{}, c.checks.Err
	}
	return c.take(c.home.load(), c.home.clock.instant(t))
}
