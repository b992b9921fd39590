package redis

import (
	"context"
	"strings"

	"github.com/seed-181794aa/ratelimit/tb"
)

// group is charges that one script takes: all, or none. Their names differ, and they are on one
// server. The first charge's limiter makes the trips.
type group []*Charge

// admits reports whether c can be a part of the group.
func (g group) admits(c *Charge) bool {
	l, first := c.limiter, g[0].limiter
	if l.client != first.client {
		return false
	}
	if first.cluster && tagOf(c.name) != tagOf(g[0].name) {
		return false
	}
	for _, other := range g {
		if other.name == c.name {
			return false
		}
	}
	return true
}

// tagOf returns what decides the slot of a name. No prefix has a brace.
func tagOf(name string) string {
	_, tag, _ := strings.Cut(name, "{")
	if tag, _, _ = strings.Cut(tag, "}"); tag == "" {
		return name
	}
	return tag
}

// take takes all charges, or none. If a charge refuses, the others have the decisions that they
// would have returned alone.
func (g group) take(ctx context.Context) ([]tb.Decision, error) {
	if len(g) == 1 {
		d, err := g[0].take(ctx)
		return []tb.Decision{d}, err
	}
	decisions := make([]tb.Decision, len(g))
	results, err := g.run(ctx)
	if err != nil {
		return decisions, g.degrade(ctx, decisions, err)
	}
	all := true
	for _, r := range results {
		all = all && r.Allowed
	}
	for i, c := range g {
		decisions[i] = results[i].Decision
		c.limiter.counts.decided(decisions[i].Allowed)
		c.failure = nil
		results[i].Allowed = all
		c.keep(results[i])
		if all {
			c.limiter.warm(ctx, c.layout, c.key, c.item.units)
		}
	}
	return decisions, nil
}

// degrade decides the charges by the failure policies of their limiters, if err is why the server
// did not. A local share that has granted when another one refuses does not get its tokens back.
func (g group) degrade(ctx context.Context, decisions []tb.Decision, err error) error {
	for i, c := range g {
		c.taken, c.asked, c.from, c.delay = false, false, nil, 0
		o, err := c.limiter.degrade(ctx, c.layout, c.key, c.item.units, err)
		if err != nil {
			return err
		}
		decisions[i], c.failure = o.Decision, o.Failure
	}
	return nil
}

// run runs the script, and returns the results of the charges.
func (g group) run(ctx context.Context) ([]result, error) {
	l := g[0].limiter
	parts := make([]part, len(g))
	for i, c := range g {
		if c.limiter.closed.Load() {
			return nil, ErrClosed
		}
		parts[i] = part{c.layout, c.name, []item{c.item}}
	}
	var r reply
	err := l.guard(g[0].key, func() error {
		return l.send(ctx, func(deadline int64) (err error) {
			r, err = l.together(&l.node(g[0].key).offset, deadline, true, parts)
			if err == nil && r.failure != nil {
				err = r.failure
			}
			return err
		})
	})
	results := make([]result, len(g))
	for i, c := range g {
		if err != nil {
			break
		}
		bucket, failure := r.bucket(i)
		if failure != nil {
			err = failure
		}
		results[i].before = c.layout.found(bucket, r.now)
		s := results[i].before
		o := c.layout.apply(&s, &c.item)
		results[i].Decision, results[i].delay = o.Decision, o.delay
	}
	return results, l.counts.failed(err)
}

// undo gives back what the last take has taken. It waits for the server as long as a call does.
func (g group) undo() {
	var taken group
	var parts []part
	for _, c := range g {
		switch {
		case c.taken && c.from != nil:
			c.from.left.Add(c.item.units)
		case c.taken:
			taken = append(taken, c)
			undo := undoOf(c.before, c.item.units, noDeadline)
			parts = append(parts, part{c.layout, c.name, []item{undo}})
		}
		c.taken = false
	}
	if taken == nil {
		return
	}
	l := g[0].limiter
	err := l.send(context.Background(), func(deadline int64) error {
		var err error
		send := func() { _, err = l.together(&l.node(g[0].key).offset, deadline, false, parts) }
		for _, c := range taken { // no limiter may refuse by what it knew before
			next := send
			send = func() { c.limiter.denials.reset(next, c.key) }
		}
		send()
		return err
	})
	_ = l.counts.failed(err)
}
