package redis

import (
	"context"
	"slices"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// TakeAll is tb.TakeAll with fewer trips, for charges of which some are on Redis. It takes from all
// charges or from none, and returns the decision of each, in buf if its capacity suffices. t is a
// reading of the clocks of the other charges.
//
// The charges on Redis that have one client and one hash tag are taken by one script, all or none:
// see WithTag. Without a cluster, the tags do not matter. A refused script writes nothing. Charges
// of several tags are taken one script after another. If one refuses, those before it are
// cancelled.
// So put the charge that refuses most often first. A process that ends between a grant and its
// Cancel costs tokens.
//
// The other charges are peeked at first. If one refuses, Redis is not asked. They are taken last.
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
		all, err := g.charges.take(ctx)
		allowed = err == nil
		for k, i := range g.indices {
			decisions[i] = all[k]
			allowed = allowed && all[k].Allowed
		}
		if !allowed {
			return decisions, false, err
		}
		undo = append(undo, g.charges.undo)
	}
	for _, i := range others {
		decisions[i], err = charges[i].Take(t)
		if allowed = err == nil && decisions[i].Allowed; !allowed {
			return decisions, false, err
		}
		undo = append(undo, charges[i].Cancel)
	}
	return decisions, true, nil
}

// subset is a group and where its charges are among all.
type subset struct {
	charges group
	indices []int
}

// split returns the charges on Redis in groups, and the indices of the other charges.
func split(charges []tb.Charge) (groups []subset, others []int) {
next:
	for i, x := range charges {
		c, ok := x.(*Charge)
		if !ok {
			others = append(others, i)
			continue
		}
		for k := range groups {
			if g := &groups[k]; g.charges.admits(c) {
				g.charges, g.indices = append(g.charges, c), append(g.indices, i)
				continue next
			}
		}
		groups = append(groups, subset{group{c}, []int{i}})
	}
	return groups, others
}
