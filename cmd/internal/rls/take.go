package rls

import (
	"context"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/redis"
)

// isLimited reports whether a rule decides on the descriptor.
func (e *entry) isLimited() bool { return e.rule != nil && !e.unlimited }

// isAsked reports whether the rule of the descriptor has decided.
func (e *entry) isAsked() bool { return e.decision != (tb.Decision{}) }

// refused reports whether the rule of the descriptor refuses the hits.
func (e *entry) refused() bool { return !e.decision.Allowed && e.isAsked() }

// setTaken records that the charge of the descriptor was taken or refused. If it was taken from a
// bucket that lacks the hits, the rule refuses until they are paid. It never grants more than a
// burst, of which a report takes no more.
func (c *call) setTaken(e *entry, d tb.Decision, taken bool) {
	e.decision, e.taken = d, taken
	if !taken || !e.owes {
		return
	}
	if delay := e.charge.Delay(); delay > 0 {
		e.decision = tb.Decision{RetryAfter: delay}
		e.rule.buckets.owe(c.now.Add(delay).Unix())
	}
	if costOf(e.hits, e.rule.Cost) > float64(e.rule.Limit.Capacity) {
		e.decision = tb.Decision{RetryAfter: tb.Never}
	}
}

// decide takes the hits, as ShouldRateLimit says, and reports whether the request is granted. If a
// descriptor refuses the request and no hits are owed, the rest is not asked: with Redis, it would
// be a command for each.
func (c *call) decide(ctx context.Context) (allowed bool, err error) {
	var n [roles]int
	c.owed = false
	for i := range c.entries {
		if e := &c.entries[i]; e.isLimited() {
			n[e.role]++
			c.owed = c.owed || e.owes
		}
	}
	if n == [roles]int{} {
		return true, nil
	}
	c.now = c.service.Now()
	allowed = true
	if n[enforced] > 0 {
		allowed, err = c.takeEnforced(ctx)
	}
	if err == nil && n[quota] > 0 && (allowed || c.owed) {
		allowed, err = c.takeQuotas(allowed)
	}
	if err == nil && n[shadow] > 0 && (allowed || c.owed) {
		err = c.each(shadow, func(e *entry) error { return c.takeOne(e, allowed || e.owes) })
	}
	for i := range c.entries {
		if e := &c.entries[i]; e.owes && !e.taken && e.decision.Remaining == 0 && !e.refused() {
			e.decision = tb.Decision{} // what is left before the hits is not known
		}
	}
	return allowed, err
}

// each calls f with each limited descriptor of a role, until an error.
func (c *call) each(r role, f func(*entry) error) error {
	for i := range c.entries {
		if e := &c.entries[i]; e.isLimited() && e.role == r {
			if err := f(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeEnforced takes the hits of all enforced rules, or of none.
func (c *call) takeEnforced(ctx context.Context) (allowed bool, err error) {
	c.charges, c.charged = c.charges[:0], c.charged[:0]
	allowed = true
	err = c.each(enforced, func(e *entry) (err error) {
		switch {
		case e.charge == nil:
		case !e.checkOnly:
			c.charges, c.charged = append(c.charges, e.charge), append(c.charged, e)
		case allowed || c.owed:
			err = c.takeOne(e, false)
		}
		allowed = allowed && !e.refused()
		return err
	})
	taken := false
	if err == nil && allowed && c.late == nil {
		c.decisions, taken, err = c.service.Store.TakeAll(ctx, c.now, c.charges, c.decisions)
		if err != nil {
			return false, err
		}
		allowed = taken
		for i, e := range c.charged {
			c.setTaken(e, c.decisions[i], taken)
			if err == nil {
				err = c.failure(e)
			}
			allowed = allowed && !e.refused()
		}
	}
	if err == nil && !taken {
		err = c.takeOwed()
	}
	if err != nil || !allowed { // also if only a rule with debt refuses
		c.undo(enforced)
		return false, err
	}
	return true, nil
}

// takeOwed takes the hits that are owed to the enforced rules if they were not taken. Before, it
// asks the rules that were not asked, because one without debt may refuse.
func (c *call) takeOwed() error {
	for _, owes := range []bool{false, true} {
		c.waive(enforced)
		for _, e := range c.charged {
			if !c.owed || e.owes != owes || !owes && e.isAsked() {
				continue
			}
			if err := c.takeOne(e, owes); err != nil {
				return err
			}
		}
	}
	return nil
}

// waive says that nothing is owed if a rule of a role refuses that has no debt.
func (c *call) waive(r role) {
	_ = c.each(r, func(e *entry) error { // f returns no error
		c.owed = c.owed && (e.debt || !e.refused())
		return nil
	})
}

// takeQuotas takes the hits of each quota that has them. If none has, the request is refused, and
// the enforced rules get their hits back.
func (c *call) takeQuotas(allowed bool) (bool, error) {
	granted := false
	err := c.each(quota, func(e *entry) error {
		err := c.takeOne(e, allowed || e.owes)
		granted = granted || !e.refused()
		return err
	})
	for i := range c.entries { // a quota in shadow mode grants everything
		e := &c.entries[i]
		granted = granted || e.isLimited() && e.role == shadow && c.isQuota(e.rule)
	}
	if err != nil || !granted {
		c.waive(quota)
		c.undo(enforced)
		c.undo(quota)
		return false, err
	}
	return allowed, nil
}

// takeOne takes the hits of a descriptor, or only checks them. If Redis was late for another
// descriptor of the request, it is not asked, because the request would wait for each.
func (c *call) takeOne(e *entry, take bool) (err error) {
	switch {
	case e.charge == nil:
		return nil
	case c.late != nil:
		e.decision = c.late.decision
		return nil
	case take && !e.checkOnly:
		d, failed := e.charge.Take(c.now)
		c.setTaken(e, d, failed == nil && d.Allowed)
		err = failed
	default:
		e.decision, err = e.charge.Peek(c.now)
	}
	if err == nil {
		err = c.failure(e)
	}
	return err
}

// undo gives back what the rules of a role have taken, except what is owed. The last is the first:
// a bucket in debt gives nothing back for a descriptor while a later one waits for its slot.
func (c *call) undo(r role) {
	for i := len(c.entries) - 1; i >= 0; i-- {
		if e := &c.entries[i]; e.role == r && e.taken && (!c.owed || !e.owes) {
			e.charge.Cancel()
			e.taken = false
		}
	}
}

// failure returns why Redis did not decide on a descriptor, if that is an error of the request. A
// charge in memory cannot fail.
func (c *call) failure(e *entry) error {
	f, ok := e.charge.(interface{ Failure() *redis.Error })
	if !ok || f.Failure() == nil {
		return nil
	}
	err := f.Failure()
	if err.Cause == redis.CauseTimeout {
		c.late = e
	}
	if c.service.StoreErrors && e.role != shadow {
		return err
	}
	return nil
}
