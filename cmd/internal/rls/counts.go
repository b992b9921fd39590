package rls

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
)

// serviceCounts counts requests. unmatched counts descriptors.
type serviceCounts struct {
	allowed, refused, shadowed, invalid, undecided, unconfigured atomic.Uint64
	unknownDomains, unmatched, repaired                          atomic.Uint64
}

// ruleCounts counts the hits of a rule by its own decision.
type ruleCounts [decisions]atomic.Uint64

// decision is what a rule has decided on hits.
type decision int

const (
	total    decision = iota // all hits, also those that only other rules refuse
	within                   // the limit
	near                     // the limit, and also within it
	over                     // the limit
	shadowed                 // over the limit of a rule in shadow mode
	decisions
)

// String returns the decision as metrics have it.
func (d decision) String() string {
	return [decisions]string{"total", "within_limit", "near_limit", "over_limit", "shadow_mode"}[d]
}

// Bounds on the paths of a rule in metrics that depend on requests. What is beyond them counts for
// the rule as a whole.
const (
	maxDetails = 1000
	maxDetail  = 512 // bytes of a path
)

// details has the counts of the paths of a rule. It is safe for concurrent use.
type details struct {
	mu     sync.RWMutex
	counts map[string]*ruleCounts
}

// of returns the counts of a path, or nil if it is too long or there are too many.
func (d *details) of(path []byte) *ruleCounts {
	if len(path) > maxDetail {
		return nil
	}
	d.mu.RLock()
	n := d.counts[string(path)]
	d.mu.RUnlock()
	if n != nil {
		return n
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if n = d.counts[string(path)]; n != nil || len(d.counts) >= maxDetails {
		return n
	}
	if d.counts == nil {
		d.counts = map[string]*ruleCounts{}
	}
	n = new(ruleCounts)
	d.counts[string(path)] = n
	return n
}

// count counts the hits of each descriptor, and the request.
func (c *call) count(allowed bool) {
	switch {
	case allowed:
		c.service.counts.allowed.Add(1)
	case c.service.Shadow:
		c.service.counts.shadowed.Add(1)
	default:
		c.service.counts.refused.Add(1)
	}
	for i := range c.entries {
		e := &c.entries[i]
		if e.rule == nil {
			continue
		}
		n := e.rule.counts
		if e.rule.Dynamic {
			c.buffer = e.rule.AppendPath(c.buffer[:0], e.descriptor.GetEntries())
			if own := e.rule.details.of(c.buffer); own != nil {
				n = own
			}
		}
		e.count(n)
		if c.service.Refused != nil && e.isLimited() && e.refused() {
			c.service.Refused(c.service.refusal(e))
		}
	}
}

// count counts the hits, but of one descriptor no more than a request can have for all, so that a
// sum does not begin again at 0.
func (e *entry) count(n *ruleCounts) {
	hits := min(e.hits, math.MaxUint32)
	n[total].Add(hits)
	switch {
	case e.rule.Unlimited:
		n[within].Add(hits)
	case e.refused():
		n[over].Add(hits)
		if e.role == shadow {
			n[shadowed].Add(hits)
		}
	case e.taken:
		n[within].Add(hits)
		if e.decision.Remaining < (e.rule.Limit.Capacity+4)/5 { // rounded up
			n[near].Add(hits)
		}
	}
}

// refusal returns the refusal of the descriptor's rule.
func (s *Service) refusal(e *entry) Refusal {
	r, key := e.rule, e.key
	f := Refusal{Domain: r.Domain, Rule: r.Path, Descriptor: e.descriptor.GetEntries()}
	if r.isFixed() {
		return f
	}
	l, inMemory := r.buckets.StoreLimiter.(table)
	if !inMemory {
		return f
	}
	f.Level = func() (tb.Limit, tb.Level, error) {
		if now := s.state.Load().byID[r.ID]; r.ID != "" && (now == nil || now.buckets != r.buckets) {
			return tb.Limit{}, tb.Level{}, errNoRule
		}
		level, err := l.Level(context.Background(), key)
		return r.buckets.Limit(), level, err
	}
	return f
}

// spaces escapes the spaces of a domain, so that the first one ends it.
var spaces = strings.NewReplacer(`\`, `\\`, " ", `\ `)

var errNoRule = errors.New("the rule is not in force")

// Stats returns the counts of each rule: the hits that were granted and refused, and its table.
func (s *Service) Stats() (all []httplimit.RuleStats) {
	s.state.Load().all(func(r *rule) {
		st := httplimit.RuleStats{
			Set: r.Domain, Rule: r.Path, Label: spaces.Replace(r.Domain) + " " + r.Path,
			Shadow: r.Shadow, Limit: r.Limit,
		}
		add := func(n *ruleCounts) {
			if r.Shadow {
				st.ShadowGranted += n[within].Load()
				st.ShadowRefused += n[over].Load()
				return
			}
			st.Granted += n[within].Load()
			st.Refused += n[over].Load()
		}
		add(r.counts)
		r.details.all(func(_ string, n *ruleCounts) { add(n) })
		if r.buckets != nil {
			st.Limiter = r.buckets.StoreLimiter
			if l, inMemory := st.Limiter.(table); inMemory {
				st.Table = l.Stats()
			}
		}
		all = append(all, st)
	})
	return all
}

// all calls f with each path and its counts.
func (d *details) all(f func(path string, n *ruleCounts)) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for path, n := range d.counts {
		f(path, n)
	}
}
