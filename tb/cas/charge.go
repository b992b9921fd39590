package cas

import (
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// part is what the charges of a Limiter and of a Bucket have in common.
type part struct {
	err     error // why the charge is inert, or nil
	tokens  float64
	within  time.Duration // the longest delay, or 0
	keep    float64       // the tokens that must be left, 0 if the charge may wait
	hold    time.Duration // for which a refusal holds the bucket, 0 if the charge may wait
	delay   time.Duration // of the last Take
	receipt receipt       // of the last Take, zero if it was refused, cancelled or settled
}

// MayWait lets the charge put the bucket into debt, as Wait does, if the tokens can be used within
// the given time from the reading of Take. Take then grants what it would refuse, and Delay returns
// the wait. With 0, the charge does not wait. With a negative time it is inert from then on, with a
// *tb.ConfigError: see tb.Charge.
func (p *part) MayWait(within time.Duration) {
	switch {
	case within == 0, within > 0 && p.keep == 0 && p.hold == 0:
		p.within = within
	case within > 0:
		p.fail(&tb.ConfigError{Field: "within", Value: within, Range: "0 after Keep or HoldOnRefusal"})
	default:
		p.fail(&tb.ConfigError{Field: "within", Value: within, Range: "0 or more"})
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
func (p *part) Keep(tokens float64) {
	switch err := checkActual(tokens); {
	case err != nil:
		p.fail(err)
	case tokens > 0 && p.within > 0:
		p.fail(&tb.ConfigError{Field: "keep", Value: tokens, Range: "0 after MayWait"})
	default:
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
func (p *part) HoldOnRefusal(d time.Duration) {
	switch {
	case d < 0:
		p.fail(&tb.ConfigError{Field: "hold", Value: d, Range: "0 or more"})
	case d > 0 && p.within > 0:
		p.fail(&tb.ConfigError{Field: "hold", Value: d, Range: "0 after MayWait"})
	default:
		p.hold = d
	}
}

// fail makes the charge inert, unless it is.
func (p *part) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

// isPlain reports whether the charge neither waits, nor keeps, nor holds.
func (p *part) isPlain() bool { return p.within == 0 && p.keep == 0 && p.hold == 0 }

// takeNothing is Take of an inert charge.
func (p *part) takeNothing() (tb.Decision, error) {
	p.receipt, p.delay = receipt{}, 0
	return tb.Decision{}, p.err
}

func (p *part) request() request {
	return request{kind: waits, tokens: p.tokens, within: p.within, keep: p.keep, hold: p.hold}
}

// Delay returns the time from the reading of the last Take until its tokens may be used. It is 0
// if that Take was refused, cancelled or settled.
func (p *part) Delay() time.Duration { return p.delay }

// takeFast is the fast path of takePart: it takes p at t, if c can decide and p need not wait. c is
// the bucket's cell, or nil, and m its layout, which was loaded later.
func (p *part) takeFast(c *cell, m *layout, t uint64) (d tb.Decision, ok bool) {
	if c == nil || p.keep > 0 {
		return tb.Decision{}, false
	}
	d, before, after, ok := c.take(m, t, m.unitsOf(p.tokens))
	if d.Allowed {
		p.receipt, p.delay = receipt{c, before, after}, 0
		return d, true
	}
	p.receipt, p.delay = receipt{}, 0
	return d, ok && p.isPlain()
}

// takePart takes p at t from a bucket in any state.
func takePart[H home](h H, p *part, c *cell, t uint64) (result, error) {
	p.receipt, p.delay = receipt{}, 0
	o, err := spend(h, c, t, p.request())
	if o.Allowed {
		p.receipt, p.delay = o.receipt, o.delay
	}
	return o, err
}

// cancel gives back what the last Take has taken. It was granted.
func (p *part) cancel(s *limits) {
	if p.within > 0 {
		s.cancellations.Add(1)
	}
	s.giveBack(p.receipt, p.tokens)
	p.receipt, p.delay = receipt{}, 0
}

func settlePart[H home](h H, p *part, actual float64) error {
	if err := checkActual(actual); err != nil {
		return err
	}
	if p.receipt.cell != nil {
		settle(h, p.tokens, actual)
		p.receipt, p.delay = receipt{}, 0
	}
	return nil
}

// Charge is a cost to take from a key's bucket as one part of tb.TakeAll. Its address is a
// tb.Charge, an interface that package ratelimit calls Charge; there this type is KeyCharge. Only
// one goroutine at a time may use it. The zero Charge has no bucket: Peek, Take and Level of it
// panic.
type Charge[K comparable] struct {
	place place[K]
	part
	checked *cell // that Peek has found, so that Take need not look it up
	hash    uint64
}

var _ tb.Charge = (*Charge[string])(nil)

// Charge returns a charge on key's bucket. It takes nothing and allocates nothing. With an invalid
// cost the charge is inert: see tb.Charge.
func (l *Limiter[K]) Charge(key K, cost float64) (Charge[K], error) {
	err := checkCost(cost)
	return Charge[K]{place: l.placeOf(key), part: part{tokens: cost, err: err}}, err
}

// ChargeIn is Charge in a tier. The next Take, or a TakeAll that refuses the charge, moves the key
// to that tier. It returns a *tb.ConfigError, and an inert charge, if the tier does not exist.
func (l *Limiter[K]) ChargeIn(tier int, key K, cost float64) (Charge[K], error) {
	c, err := l.Charge(key, cost)
	if bad := l.limits.checkTier(tier); bad != nil {
		c.err = bad
		return c, bad
	}
	c.place.tier, c.place.enters = tier, true
	return c, err
}

// Peek implements tb.Charge. t is a reading of the limiter's clock.
func (c *Charge[K]) Peek(t time.Time) (d tb.Decision, err error) {
	if c.err != nil {
		return tb.Decision{}, c.err
	}
	at := c.place.clock.instant(t)
	c.checked, c.hash = c.place.table.Recent(c.place.key)
	if c.checked != nil && c.isPlain() {
		m := c.place.layoutOf(c.checked)
		if d, ok := c.checked.peek(m, at, m.unitsOf(c.tokens)); ok {
			return d, nil
		}
	}
	d, c.checked, err = peek(c.place, at, c.request())
	return d, err
}

// Level returns how full the bucket is at t, a reading of the limiter's clock. It is Limiter.Level
// for a caller that has a charge, less the tokens that the charge keeps.
func (c *Charge[K]) Level(t time.Time) (tb.Level, error) {
	return level(c.place, c.place.clock.instant(t), c.keep)
}

// Take implements tb.Charge. t is a reading of the limiter's clock.
func (c *Charge[K]) Take(t time.Time) (tb.Decision, error) {
	if c.err != nil {
		return c.takeNothing()
	}
	target := c.checked
	if target == nil {
		target, c.hash = c.place.table.Recent(c.place.key)
	}
	at := c.place.clock.instant(t)
	d, ok := c.takeFast(target, c.place.layoutOf(target), at)
	if !ok { // target may no longer be the key's cell
		o, err := takePart(c.place, &c.part, c.place.load(), at)
		if d = o.Decision; err != nil {
			return d, err
		}
	}
	if d.Allowed {
		c.place.table.Remember(c.hash, c.receipt.cell, wins(c.receipt.after))
	}
	if d.Allowed && c.within > 0 {
		c.place.shared().reservations.Add(1)
	}
	return d, nil
}

// HasClock reports whether the limiter was made with tb.WithClock, so that Take needs a reading of
// that clock. It is false if the charge is inert, because then no reading matters.
func (c *Charge[K]) HasClock() bool { return c.err == nil && c.place.clock.now != nil }

// Enter does what a refused Take does, and takes nothing: it moves the key to the tier that
// ChargeIn has named, unless it is in that tier or not in the table, and holds the bucket for
// HoldOnRefusal, unless Take would be granted. tb.TakeAll calls it if Peek has refused the charge.
// t is a reading of the limiter's clock.
func (c *Charge[K]) Enter(t time.Time) {
	if (c.place.enters || c.hold > 0) && c.err == nil {
		enter(c.place, c.place.clock.instant(t), c.request())
	}
}

// Cancel implements tb.Charge. It gives nothing back to a bucket that was evicted, or moved to a
// new base, since Take.
func (c *Charge[K]) Cancel() {
	if c.receipt.cell != nil {
		c.cancel(c.place.shared())
	}
}

// Settle replaces the cost of the last Take by the actual cost, as tb.Reservation.Settle does. It
// does nothing if that Take was refused, cancelled or settled. The key stays in its tier. If it has
// left the table since, what is charged makes a bucket in the tier that
// ChargeIn has named, or in tier 0.
func (c *Charge[K]) Settle(actual float64) error {
	p := c.place
	p.enters = false // the key may have changed its tier since
	return settlePart(p, &c.part, actual)
}

// BucketCharge is a cost to take from a Bucket as one part of tb.TakeAll. Its address is a
// tb.Charge. Only one goroutine at a time may use it. The zero BucketCharge has no bucket: Peek,
// Take and Level of it panic.
type BucketCharge struct {
	bucket *Bucket
	part
}

var _ tb.Charge = (*BucketCharge)(nil)

// Charge returns a charge on the bucket. It takes nothing and allocates nothing. With an invalid
// cost the charge is inert: see tb.Charge.
func (b *Bucket) Charge(cost float64) (BucketCharge, error) {
	err := checkCost(cost)
	return BucketCharge{bucket: b, part: part{tokens: cost, err: err}}, err
}

// Peek implements tb.Charge. t is a reading of the bucket's clock.
func (c *BucketCharge) Peek(t time.Time) (tb.Decision, error) {
	if c.err != nil {
		return tb.Decision{}, c.err
	}
	b := c.bucket
	at, target := b.clock.instant(t), b.load()
	if target != nil && c.isPlain() {
		m := b.layout()
		if d, ok := target.peek(m, at, m.unitsOf(c.tokens)); ok {
			return d, nil
		}
	}
	d, _, err := peek(b, at, c.request())
	return d, err
}

// Level returns how full the bucket is at t, a reading of the bucket's clock. Its error is always
// nil: it has one, as Charge.Level has.
func (c *BucketCharge) Level(t time.Time) (tb.Level, error) {
	return level(c.bucket, c.bucket.clock.instant(t), c.keep)
}

// Take implements tb.Charge. t is a reading of the bucket's clock.
func (c *BucketCharge) Take(t time.Time) (tb.Decision, error) {
	if c.err != nil {
		return c.takeNothing()
	}
	b := c.bucket
	at, target := b.clock.instant(t), b.load()
	if d, ok := c.takeFast(target, b.layout(), at); ok { // a Bucket counts nothing
		return d, nil
	}
	o, err := takePart(b, &c.part, target, at)
	return o.Decision, err
}

// Enter does what a refused Take does, and takes nothing; see Charge.Enter.
func (c *BucketCharge) Enter(t time.Time) {
	if c.hold > 0 && c.err == nil {
		enter(c.bucket, c.bucket.clock.instant(t), c.request())
	}
}

// HasClock reports whether the bucket was made with tb.WithClock; see Charge.HasClock.
func (c *BucketCharge) HasClock() bool { return c.err == nil && c.bucket.clock.now != nil }

// Cancel implements tb.Charge. It gives nothing back to a bucket that has moved to a new base since
// Take.
func (c *BucketCharge) Cancel() {
	if c.receipt.cell != nil {
		c.cancel(&c.bucket.limits)
	}
}

// Settle replaces the cost of the last Take by the actual cost; see Charge.Settle.
func (c *BucketCharge) Settle(actual float64) error { return settlePart(c.bucket, &c.part, actual) }
