package rls

import (
	"context"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/redis"
)

// isLimited reports whether a rule decides on the descriptor.
func (e *entry) isLimited() bool { return e.rule != nil && !e.unlimited }

// refused reports whether the rule of the descriptor refuses the hits. A charge that was not asked
// has the zero decision.
func (e *entry) refused() bool { return !e.decision.Allowed && e.decision.RetryAfter > 0 }

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
		e.rule.limiter.owes(c.now.Add(delay).Unix())
	}
	if costOf(e.hits, e.rule.Cost) > float64(e.rule.Limit.Capacity) {
		e.decision = tb.Decision{RetryAfter: tb.Never}
	}
}

// decide takes the hits, as ShouldRateLimit says, and reports whether the request is granted.
func (c *call) decide(ctx context.Context) (allowed bool, err error) {
	var n [roles]int
	for i := range c.entries {
		if e := &c.entries[i]; e.isLimited() {
			n[e.role]++
		}
	}
	c.owed = true
	if n == [roles]int{} {
		return true, nil
	}
	c.now = c.service.Now()
	allowed = true
	if n[enforced] > 0 {
		if allowed, err = c.takeEnforced(ctx); err != nil {
			return false, err
		}
	}
	if n[quota] > 0 {
		if allowed, err = c.takeQuotas(allowed); err != nil {
			return false, err
		}
	}
	if n[shadow] > 0 {
		err = c.each(shadow, func(e *entry) error { return c.takeOne(e, allowed || c.owed && e.owes) })
	}
	for i := range c.entries {
		if err == nil && !allowed {
			err = c.lookAgain(&c.entries[i])
		}
	}
	return allowed, err
}

// lookAgain finds what is left if hits that are owed were not taken, and nothing would be left
// after them: the bucket has just them, or lacks some.
func (c *call) lookAgain(e *entry) (err error) {
	d := e.decision
	if !e.owes || e.taken || !d.Allowed || d.Remaining > 0 || c.late != nil {
		return nil
	}
	e.charge.MayWait(0)
	d, err = e.charge.Peek(c.now)
	_ = c.failure(e) // which cannot change that the request is refused
	e.decision = tb.Decision{Allowed: d.Allowed, Remaining: d.Remaining}
	return err
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
	for i := range c.entries {
		e := &c.entries[i]
		switch {
		case !e.isLimited() || e.role != enforced:
		case e.charge == nil || e.checkOnly:
			if err := c.takeOne(e, false); err != nil {
				return false, err
			}
			allowed = allowed && !e.refused()
		default:
			c.charges, c.charged = append(c.charges, e.charge), append(c.charged, e)
		}
	}
	taken := false
	if allowed && c.late == nil {
		if taken, err = c.takeAll(ctx); err != nil {
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

// takeOwed takes the hits that are owed to the enforced rules if they were not taken, and asks the
// rules that were not asked.
func (c *call) takeOwed() error {
	for _, owes := range []bool{false, true} {
		for _, e := range c.charged {
			take := owes && c.owed
			if e.owes != owes || !take && e.decision != (tb.Decision{}) {
				continue
			}
			if err := c.takeOne(e, take); err != nil {
				return err
			}
		}
		c.waive(enforced)
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

// takeAll takes all charges, or none.
func (c *call) takeAll(ctx context.Context) (allowed bool, err error) {
	if c.service.Store == nil {
		c.decisions, allowed, err = tb.TakeAll(c.now, c.charges, c.decisions)
		return allowed, err
	}
	c.decisions, allowed, err = redis.TakeAll(ctx, c.now, c.charges, c.decisions)
	return allowed, err
}

// takeQuotas takes the hits of each quota that has them. If none has, the request is refused, and
// the enforced rules get their hits back.
func (c *call) takeQuotas(allowed bool) (bool, error) {
	granted := false
	err := c.each(quota, func(e *entry) error {
		err := c.takeOne(e, allowed || c.owed && e.owes)
		granted = granted || !e.refused()
		return err
	})
	for i := range c.entries { // a quota in shadow mode grants everything
		e := &c.entries[i]
		granted = granted || e.isLimited() && e.role == shadow && e.rule.Quota
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

// failure returns why Redis did not decide on a descriptor, if that is an error of the request.
func (c *call) failure(e *entry) error {
	if c.service.Store == nil {
		return nil
	}
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
