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
// The charges on Redis that have one client and one hash tag are taken by one command, all or none:
// see WithTag. Without a cluster, the tags do not matter. A refused command takes nothing, but
// converts the buckets of another limit. Charges of several tags are taken by one command after
// another. If one refuses, those before it are cancelled. So put the charge that refuses most often
// first. A process that ends between a grant and its Cancel costs tokens.
//
// The other charges are peeked at first. If one refuses, Redis is not asked. They are taken last.
//
// If it is known that a bucket on Redis cannot pay, and it has no lease, its charge is refused
// without a command, and the charges on Redis of which that is not known are not asked: see
// WithMaxDenial.
//
// A charge that was not asked, because another one has refused before, has the zero Decision. A
// refused call is granted after the longest RetryAfter, or later if a charge was not asked. An
// error ends the call, and TakeAll cancels what it has taken.
func TakeAll(
	ctx context.Context, t time.Time, charges []tb.Charge, buf []tb.Decision,
) (decisions []tb.Decision, allowed bool, err error) {
	decisions = slices.Grow(buf[:0], len(charges))[:len(charges)]
	clear(decisions)
	groups, others := split(charges)
	allowed = true
	for _, i := range others {
		if decisions[i], err = charges[i].Peek(t); err != nil {
			return decisions, false, err
		}
		allowed = allowed && decisions[i].Allowed
	}
	if !allowed {
		for _, i := range others { // as tb.TakeAll does
			if c, ok := charges[i].(interface{ Enter(time.Time) }); ok && !decisions[i].Allowed {
				c.Enter(t)
			}
		}
		return decisions, false, nil
	}
	known := false
	for _, g := range groups {
		known = g.refuse(ctx, decisions) || known
	}
	if known {
		return decisions, false, nil
	}
	var undo []func()
	defer func() {
		if !allowed {
			for i := len(undo); i > 0; i-- {
				undo[i-1]()
			}
		}
	}()
	for _, g := range groups {
		if allowed, err = g.take(ctx, decisions); !allowed {
			return decisions, false, err
		}
		undo = append(undo, g.cancel)
	}
	for _, i := range others {
		decisions[i], err = charges[i].Take(t)
		if err != nil || !decisions[i].Allowed {
			return decisions, false, err
		}
		undo = append(undo, charges[i].Cancel)
	}
	return decisions, true, nil
}

// group is charges that one command takes: all, or none. Their names differ, and they are on one
// server. The first charge's limiter sends the command.
type group struct {
	charges []*Charge
	at      []int // their indices among the charges of TakeAll
}

// split returns the charges on Redis in groups, and the indices of the other charges.
func split(charges []tb.Charge) (groups []*group, others []int) {
	for i, x := range charges {
		c, ok := x.(*Charge)
		if !ok {
			others = append(others, i)
			continue
		}
		k := slices.IndexFunc(groups, func(g *group) bool { return g.admits(c) })
		if k < 0 {
			k, groups = len(groups), append(groups, new(group))
		}
		groups[k].charges, groups[k].at = append(groups[k].charges, c), append(groups[k].at, i)
	}
	return groups, others
}

// admits reports whether c can be a part of the group.
func (g *group) admits(c *Charge) bool {
	first := g.charges[0]
	return c.limiter.client == first.limiter.client &&
		(!c.limiter.isCluster() || tagOf(c.name) == tagOf(first.name)) &&
		!slices.ContainsFunc(g.charges, func(o *Charge) bool { return o.name == c.name })
}

// refuse refuses the charges of which it is known that their buckets cannot pay, and reports
// whether there is one.
func (g *group) refuse(ctx context.Context, decisions []tb.Decision) (refused bool) {
	for i, c := range g.charges {
		s, denied := c.limiter.denied(c.layout, c.key, &c.item)
		if !denied || c.limiter.admit(ctx) != nil ||
			!c.limiter.leases.latest(c.key).isEmpty() { // a lease may pay it
			continue
		}
		c.limiter.counts.denied.Inc()
		c.keep(result{before: s})
		decisions[g.at[i]] = c.layout.take(&s, c.item.units)
		refused = true
	}
	return refused
}

// take takes all charges, or none, and reports whether it did. If a charge refuses, the others have
// the decisions that they would have returned alone.
func (g *group) take(ctx context.Context, decisions []tb.Decision) (allowed bool, err error) {
	if len(g.charges) == 1 {
		d, err := g.charges[0].take(ctx)
		decisions[g.at[0]] = d
		return d.Allowed, err
	}
	x, err := g.run(ctx)
	if err != nil {
		for _, c := range g.charges {
			_ = c.limiter.counts.failed(err)
		}
		return g.degrade(ctx, decisions, err)
	}
	allowed = x.granted
	for i, c := range g.charges {
		r := result{before: x.parts[i].before}
		s := r.before
		o := c.layout.apply(&s, &c.item)
		decisions[g.at[i]] = o.Decision
		c.limiter.counts.decided(o.Allowed)
		r.Allowed, r.delay = allowed, o.delay
		c.keep(r)
		if allowed {
			c.limiter.warm(ctx, c.layout, c.key, c.item.units)
		}
	}
	callPool.Put(x)
	return allowed, nil
}

// degrade decides the charges by the failure policies of their limiters, if err is why the server
// did not. A local share that has granted when another one refuses does not get its tokens back.
func (g *group) degrade(
	ctx context.Context, decisions []tb.Decision, err error,
) (allowed bool, _ error) {
	allowed = true
	for i, c := range g.charges {
		c.taken.Store(false)
		c.asked, c.from, c.delay = false, nil, 0
		o, err := c.limiter.degrade(ctx, c.layout, c.key, c.item.units, err)
		if err != nil {
			return false, err
		}
		decisions[g.at[i]], c.failure = o.Decision, o.Failure
		allowed = allowed && o.Allowed
	}
	return allowed, nil
}

// run takes the charges by one command, and returns its call.
func (g *group) run(ctx context.Context) (*call, error) {
	for _, c := range g.charges {
		if err := c.limiter.admit(ctx); err != nil {
			return nil, err
		}
	}
	l := g.charges[0].limiter
	n, opened, err := l.enter(g.charges[0].key)
	if err != nil {
		return nil, err
	}
	defer n.breaker.leave(opened)
	x := l.newCall(ctx, n)
	for _, c := range g.charges {
		x.add(c.limiter.shared, c.layout, c.key, c.name, c.item)
	}
	return x, l.await(ctx, x)
}

// cancel gives back what the last take has taken.
func (g *group) cancel() {
	var all sync.WaitGroup
	for _, c := range g.charges {
		all.Go(c.Cancel)
	}
	all.Wait()
}
