package redis

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// TakeAll is tb.TakeAll in fewer round trips, for charges of which some are on Redis. It takes from
// all charges or from none, and returns the decision of each, in buf if its capacity suffices. t is
// a reading of the clocks of the other charges.
//
// The charges on Redis that have one client are taken by one command, all or none. In a cluster,
// and with WithoutBatching, these are the charges of one key, in limiters with different prefixes,
// and several keys are taken one after another. The other charges are the last. A refused command
// takes nothing, but converts the buckets of another limit. If one refuses, those before it are
// cancelled. So put the charge that refuses most often first. A process that ends between a grant
// and its Cancel costs tokens.
//
// Redis is not asked if another charge would refuse, or if it is known that a bucket on Redis
// cannot pay, and it has no lease: see WithMaxDenial.
//
// A charge that was not asked, because another one has refused before, has the zero Decision. So a
// refused call is granted after the longest RetryAfter, or later if a charge was not asked. An
// error ends the call, and TakeAll cancels what it has taken.
func TakeAll(
	ctx context.Context, t time.Time, charges []tb.Charge, buf []tb.Decision,
) (decisions []tb.Decision, allowed bool, err error) {
	decisions = slices.Grow(buf[:0], len(charges))[:len(charges)]
	clear(decisions)
	var groups []*group
	var others []int
	for i, x := range charges {
		c, ok := x.(*Charge)
		if !ok {
			others = append(others, i)
			continue
		}
		if c.checks.Err != nil {
			return decisions, false, c.checks.Err
		}
		k := slices.IndexFunc(groups, func(g *group) bool { return g.admits(c) })
		if k < 0 {
			k, groups = len(groups), append(groups, &group{ctx: ctx, decisions: decisions})
		}
		groups[k].charges, groups[k].at = append(groups[k].charges, c), append(groups[k].at, i)
	}
	all := make([]tb.Charge, 0, len(groups)+len(others))
	for _, g := range groups {
		all = append(all, g)
	}
	for _, i := range others {
		all = append(all, charges[i])
	}
	made, allowed, err := tb.TakeAll(t, all, nil)
	for k, i := range others {
		decisions[i] = made[len(groups)+k]
	}
	return decisions, allowed, err
}

// group is charges that one command takes: all, or none. Their names differ, and they are on one
// server. The first charge's limiter sends the command. For tb.TakeAll it is one charge, whose
// decision is granted or refused.
type group struct {
	ctx       context.Context // of TakeAll
	charges   []*Charge
	at        []int         // their indices among the charges of TakeAll
	decisions []tb.Decision // of TakeAll
}

// admits reports whether c can join. Names with an empty tag have slots of their own.
func (g *group) admits(c *Charge) bool {
	first := g.charges[0]
	oneServer := c.limiter.shares() && first.limiter.shares()
	return c.limiter.client == first.limiter.client &&
		(oneServer || c.key == first.key && c.key != "" && c.key[0] != '}') &&
		!slices.ContainsFunc(g.charges, func(o *Charge) bool { return o.name == c.name })
}

// Peek refuses the charges of which it is known that their buckets cannot pay. It asks no server,
// and refuses none if it is known that the server would hold a bucket.
func (g *group) Peek(time.Time) (tb.Decision, error) {
	allowed := true
	for _, c := range g.charges {
		plain := c.item
		plain.hold = 0
		_, lacks := c.limiter.denied(c.layout, c.key, &plain)
		if _, known := c.limiter.denied(c.layout, c.key, &c.item); lacks && !known {
			return tb.Decision{Allowed: true}, nil
		}
	}
	for i, c := range g.charges {
		if !c.limiter.leases.latest(c.key).isEmpty() { // a lease may pay it
			continue
		}
		var r result
		if c.limiter.refuse(g.ctx, c.layout, c.key, &c.item, &r) {
			c.limiter.counts.decided(r.Outcome)
			c.keep(&r)
			g.decisions[g.at[i]] = r.Decision
			allowed = false
		}
	}
	return tb.Decision{Allowed: allowed}, nil
}

// Take takes all charges, or none. If a charge refuses, the others have the decisions that they
// would have returned alone.
func (g *group) Take(t time.Time) (d tb.Decision, err error) {
	if len(g.charges) == 1 {
		d, err = g.charges[0].take(g.ctx)
		g.decisions[g.at[0]] = d
		return d, err
	}
	if d, _ = g.Peek(t); !d.Allowed { // tb.TakeAll does not peek at a group alone
		return d, nil
	}
	x := callPool.Get().(*call)
	for _, c := range g.charges {
		x.add(c.limiter.shared, c.layout, c.key, c.name, c.item)
	}
	if err := g.charges[0].limiter.exec(g.ctx, x); err != nil {
		return g.degrade(err)
	}
	for i, c := range g.charges {
		var r result
		r.fill(c.layout, x.parts[i].before, &c.item)
		c.limiter.counts.decided(r.Outcome)
		g.decisions[g.at[i]] = r.Decision
		if r.Allowed && !x.granted {
			r.Allowed, r.after = false, r.before
		}
		c.limiter.warm(g.ctx, c.layout, c.key, c.item.units, &r)
		c.keep(&r)
	}
	d.Allowed = x.granted
	x.reuse()
	return d, nil
}

// degrade decides the charges by failure policies, if failure is why the server did not.
func (g *group) degrade(failure error) (d tb.Decision, err error) {
	d.Allowed = true
	for i, c := range g.charges {
		var r result
		e := c.limiter.degrade(c.layout, c.key, &c.item, failure, &r)
		c.keep(&r)
		g.decisions[g.at[i]] = r.Decision
		d.Allowed = d.Allowed && r.Allowed
		if e != nil {
			err = e
		}
	}
	if !d.Allowed {
		g.Cancel()
	}
	return d, err
}

// Cancel gives back what the last Take has taken, also what the failure policies have taken from
// local shares: otherwise a client that one rule refuses would empty the others.
func (g *group) Cancel() {
	var all sync.WaitGroup
	for _, c := range g.charges {
		c.last.share.Cancel()
		all.Go(c.Cancel)
	}
	all.Wait()
}
