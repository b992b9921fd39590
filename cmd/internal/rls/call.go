package rls

import (
	"time"

	envoy "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed-181794aa/ratelimit/cmd/internal/rls/config"
	"github.com/seed-181794aa/ratelimit/tb"
)

// call is a request under way. It is used again for other requests.
type call struct {
	service *Service
	state   *state
	request *ratelimit.RateLimitRequest
	now     time.Time

	entries   []entry // of the descriptors, in their order
	charges   []tb.Charge
	decisions []tb.Decision
	charged   []*entry // of charges
	buffer    []byte
	verdict
}

// entry is a descriptor of a request.
type entry struct {
	descriptor *envoy.RateLimitDescriptor
	rule       *rule // nil if no rule limits the descriptor
	role       role
	key        string
	hits       uint64
	kind       kind
	cost       float64 // of the charge, in tokens

	charge   tb.StoreCharge // nil without a rule, and if the rule is fixed: see rule.isFixed
	decision tb.Decision    // of the rule alone; zero if it was not asked
	taken    bool           // the tokens
}

// role is what the decision of a rule means for the request.
type role int

const (
	enforced role = iota // all must grant
	quota                // one of them must grant
	shadow               // nothing
)

// release makes c ready for another request. It keeps no text of this one.
func (c *call) release() {
	clear(c.entries)
	clear(c.charges)
	clear(c.charged)
	c.state, c.request, c.verdict = nil, nil, verdict{}
	c.service.calls.Put(c)
}

// match finds the rule of each descriptor.
func (c *call) match(r *ratelimit.RateLimitRequest) error {
	c.state, c.request = c.service.state.Load(), r
	c.entries = c.entries[:0]
	domain := c.state.config.Domain(r.GetDomain())
	if domain == nil {
		c.service.counts.unknownDomains.Add(1)
	}
	replaces := false
	for _, d := range r.GetDescriptors() {
		c.entries = append(c.entries, entry{descriptor: d})
		if domain == nil {
			continue
		}
		e := &c.entries[len(c.entries)-1]
		if err := c.matchOne(e, domain); err != nil {
			return err
		}
		replaces = replaces || e.rule != nil && len(e.rule.Replaces) > 0
	}
	if replaces {
		c.replace()
	}
	for i := range c.entries {
		if err := c.prepare(&c.entries[i]); err != nil {
			return err
		}
	}
	return nil
}

// matchOne finds the rule of a descriptor, and the key of its bucket.
func (c *call) matchOne(e *entry, domain *config.Domain) (err error) {
	all := e.descriptor.GetEntries()
	if own := e.descriptor.GetLimit(); own != nil {
		if len(all) > maxEntries {
			return status.Errorf(codes.InvalidArgument, "entries: want at most %d", maxEntries)
		}
		e.key, c.buffer = config.EntriesKey(all, c.buffer)
		e.rule, err = c.state.overrides.rule(domain.Name, own)
		return err
	}
	if found := domain.Match(all); found != nil {
		e.rule = c.state.rules[found]
		e.key, c.buffer = found.Key(all, c.buffer)
	} else {
		c.service.counts.unmatched.Add(1)
	}
	return nil
}

// replace removes the rules that other rules of the request replace, also if those are replaced.
func (c *call) replace() {
	replaced := map[string]bool{}
	for i := range c.entries {
		if r := c.entries[i].rule; r != nil {
			for _, name := range r.Replaces {
				replaced[name] = true
			}
		}
	}
	for i := range c.entries {
		if e := &c.entries[i]; e.isLimited() && replaced[e.rule.Name] {
			e.rule = nil
		}
	}
}

// isQuota reports whether one of several rules must grant the request.
func (c *call) isQuota(r *rule) bool { return r.Quota || c.service.Quota }

// prepare sets the hits of a descriptor, and its charge.
func (c *call) prepare(e *entry) error {
	r := e.rule
	if r == nil {
		return nil
	}
	e.hits = max(1, uint64(c.request.GetHitsAddend()))
	if own := e.descriptor.GetHitsAddend(); own != nil {
		e.hits = own.GetValue()
	}
	if e.descriptor.GetIsNegativeHits() {
		e.hits = 0
	}
	switch {
	case r.Shadow:
		e.role = shadow
	case c.isQuota(r):
		e.role = quota
	}
	switch several := e.hits > 1 && !c.service.Weights; {
	case e.hits == 0:
		e.kind = look
	case several && r.Debt == nil, r.Debt != nil && *r.Debt:
		e.kind = report
	}
	if r.isFixed() {
		e.decision = tb.Decision{RetryAfter: tb.Never}
		return nil
	}
	if e.hits <= 1 && !r.buckets.asked.Load() {
		r.buckets.asked.Store(true)
	}
	e.cost = costOf(max(e.hits, 1), r.Cost)
	if e.kind == report { // a bucket never grants more than its burst, and would take nothing
		c.reports++
		e.cost = min(e.cost, float64(r.Limit.Capacity))
	}
	return r.buckets.charge(e)
}
