package cas

import (
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// part is what the charges of a Limiter and of a Bucket have in common.
type part struct {
	tokens  float64
	within  time.Duration // the longest delay, or 0
	delay   time.Duration // of the last Take
	receipt receipt       // of the last Take, zero if it was refused, cancelled or settled
}

// MayWait lets the charge put the bucket into debt, as Wait does, if the tokens can be used within
// the given time from the reading of Take. Take then grants what it would refuse, and Delay returns
// the wait. With 0, the charge does not wait.
func (p *part) MayWait(within time.Duration) {
	p.within = max(within, 0)
}

func (p *part) request() request {
	return request{tokens: p.tokens, within: p.within, deep: true}
}

// Delay returns the time from the reading of the last Take until its tokens may be used. It is 0
// if that Take was refused, cancelled or settled.
func (p *part) Delay() time.Duration { return p.delay }

// takeFast is the fast path of takePart: it takes p at t, if c can decide and p need not wait. c is
// the bucket's cell, or nil, and m its layout, which was loaded later.
func (p *part) takeFast(c *cell, m *layout, t uint64) (d tb.Decision, ok bool) {
	if c == nil {
		return tb.Decision{}, false
	}
	d, before, after, ok := c.take(m, t, m.unitsOf(p.tokens))
	p.receipt, p.delay = receipt{}, 0
	if d.Allowed {
		p.receipt = receipt{c, before, after}
		return d, true
	}
	return d, ok && p.within == 0
}

// takePart takes p at t from a bucket in any state.
func takePart[H home](h H, p *part, c *cell, t uint64) (tb.Decision, error) {
	p.receipt, p.delay = receipt{}, 0
	o, err := spend(h, c, t, p.request())
	if o.Allowed {
		p.receipt, p.delay = o.receipt, o.delay
		p.countTaken(h.shared())
	}
	return o.Decision, err
}

func (p *part) countTaken(s *limits) {
	if p.within > 0 {
		s.reservations.Add(1)
	}
}

// cancel gives back what the last Take has taken.
func (p *part) cancel(s *limits) {
	if p.receipt.cell == nil {
		return
	}
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
