package rls

import (
	"context"
	"slices"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/redis"
)

// kind is what the hits of a descriptor are. The call alone decides, so that all services with one
// store agree, and also after a restart. docs/rls.md has the same table:
//
//	kind    hits                               are taken              and refused
//	look    0                                  never                  if one hit would be
//	weight  1; several, if the operator says   if all rules grant     if the bucket lacks them
//	report  several; 1, if the operator says   unless weights refuse  if the bucket lacked them
//
// A refused weight says that the call is a request, of which nothing was used.
type kind int

const (
	weight kind = iota
	report
	look
)

// verdict is what the rules have decided so far.
type verdict struct {
	reports   int    // descriptors that are reports
	refused   bool   // the request
	declined  bool   // a weight, so that the reports are not taken
	exhausted bool   // all quotas
	late      *entry // for which Redis was late, or nil
	err       error  // of a store
}

// isDone reports whether no further rule is asked: with Redis, it would be a command for each.
func (v *verdict) isDone() bool {
	return v.err != nil || v.refused && (v.declined || v.reports == 0)
}

// isLimited reports whether a rule decides on the descriptor.
func (e *entry) isLimited() bool { return e.rule != nil && !e.rule.Unlimited }

// isAsked reports whether the rule of the descriptor has decided.
func (e *entry) isAsked() bool { return e.decision != (tb.Decision{}) }

// refused reports whether the rule of the descriptor refuses the hits.
func (e *entry) refused() bool { return !e.decision.Allowed && e.isAsked() }

// decide asks the rules, and reports whether the request is granted. The role of a rule says what
// its answer means. Looks and weights come first, because they decide whether reports are taken.
func (c *call) decide(ctx context.Context) (allowed bool, err error) {
	c.now = c.service.Now()
	c.each(enforced, look)
	c.takeWeights(ctx)
	c.takeQuotas()
	c.each(enforced, report)
	if c.refused || c.err != nil {
		c.undo()
	}
	c.each(shadow, weight, report, look)
	return !c.refused, c.err
}

// each asks the rules of a role about the descriptors of some kinds.
func (c *call) each(r role, kinds ...kind) {
	for i := range c.entries {
		e := &c.entries[i]
		if !e.isLimited() || e.role != r || !slices.Contains(kinds, e.kind) || c.isDone() {
			continue
		}
		c.ask(e)
		if r == enforced && e.refused() {
			c.refused, c.declined = true, c.declined || e.kind == weight
		}
	}
}

// takeWeights takes the weights of all enforced rules, or of none.
func (c *call) takeWeights(ctx context.Context) {
	c.charges, c.charged = c.charges[:0], c.charged[:0]
	for i := range c.entries {
		switch e := &c.entries[i]; {
		case !e.isLimited() || e.role != enforced || e.kind != weight:
		case e.charge == nil:
			c.refused, c.declined = true, true
		default:
			c.charges, c.charged = append(c.charges, e.charge), append(c.charged, e)
		}
	}
	if c.refused || c.late != nil || c.err != nil || len(c.charges) == 0 {
		c.each(enforced, weight)
		return
	}
	var taken bool
	c.decisions, taken, c.err = c.service.Store.TakeAll(ctx, c.now, c.charges, c.decisions)
	if c.err != nil {
		return
	}
	c.refused = !taken
	for i, e := range c.charged {
		e.decision, e.taken = c.decisions[i], taken
		c.refused = c.refused || e.refused()
		c.checkStore(e)
	}
	c.declined = c.refused
}

// takeQuotas takes the hits of each quota that has them. If none has, the request is refused. A
// quota in shadow mode grants everything.
func (c *call) takeQuotas() {
	asked, granted, weighs := false, false, false
	for i := range c.entries {
		switch e := &c.entries[i]; {
		case !e.isLimited() || c.isDone():
		case e.role == shadow:
			granted = granted || c.isQuota(e.rule)
		case e.role == quota:
			c.ask(e)
			asked, granted, weighs = true, granted || !e.refused(), weighs || e.kind == weight
		}
	}
	if asked && !granted {
		c.refused, c.declined, c.exhausted = true, weighs, true
	}
}

// ask takes the hits of a descriptor, or looks. If Redis was late for another descriptor of the
// request, it is not asked, because the request would wait for each.
func (c *call) ask(e *entry) {
	switch {
	case e.charge == nil:
		return
	case c.late != nil:
		e.decision = c.late.decision
		return
	case e.kind == report || e.kind == weight && !c.refused:
		e.decision, c.err = e.charge.Take(c.now)
		e.taken = c.err == nil && e.decision.Allowed
	default:
		e.decision, c.err = e.charge.Peek(c.now)
	}
	if c.err == nil && c.checkStore(e) && e.kind == report {
		c.setReport(e)
	}
}

// setReport sets the decision on a report. If its bucket lacked the hits, the rule refuses until
// they are paid. It never grants more than a burst, of which a report takes no more. A rule has one
// warning: at the first debt if nothing but several hits has come, or if the bucket was in debt
// before, and so has granted nothing since the call before.
func (c *call) setReport(e *entry) {
	r, delay := e.rule, e.charge.Delay()
	lacks := float64(delay) / float64(r.Limit.Per) * float64(r.Limit.Tokens)
	if r.Debt == nil && (lacks >= e.cost+r.Cost || lacks > 0 && !r.buckets.asked.Load()) &&
		!r.buckets.warned.Swap(true) {
		c.service.Log.Warn("several hits came on a key that has not got them", "domain", r.Domain,
			"rule", r.Path, "meaning", "they count as a report of what was used, also if the request"+
				" is refused. If they are the weight of a request, set debt: false, or --hits weight for all"+
				" rules. If they are reports of requests that were under way, debt: true says so")
	}
	if delay > 0 {
		e.decision = tb.Decision{RetryAfter: delay}
		r.buckets.owe(c.now.Add(delay).Unix())
	}
	if costOf(e.hits, r.Cost) > float64(r.Limit.Capacity) {
		e.decision = tb.Decision{RetryAfter: tb.Never}
	}
}

// undo gives back what a refused request has taken, also if a report on the bucket has followed.
// Cancel would not, because a client could wait behind it. Here none does.
func (c *call) undo() {
	for i := range c.entries {
		if e := &c.entries[i]; e.taken && (c.declined || e.kind != report) {
			_ = e.charge.Settle(0) // a store that fails gives nothing back
			e.taken = false
		}
	}
}

// checkStore reports whether the store has decided on a descriptor. A charge in memory cannot fail.
func (c *call) checkStore(e *entry) bool {
	f, ok := e.charge.(interface{ Failure() *redis.Error })
	if !ok || f.Failure() == nil {
		return true
	}
	if f.Failure().Cause == redis.CauseTimeout {
		c.late = e
	}
	if c.service.StoreErrors && e.role != shadow {
		c.err = f.Failure()
	}
	return false
}
