package httplimit

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// call is the work on one request. Calls are pooled, and so are their buffers.
type call struct {
	l      *Limiter
	stripe uint32
	perRequest

	entries   []entry // the rules that apply
	keys      []byte  // what their keys are views of
	charges   []tb.Charge
	decisions []tb.Decision
	text      []byte // of header fields
}

type perRequest struct {
	r       *http.Request
	program *program
	now     time.Time

	address    netip.Addr
	hasAddress bool
	claims     map[string]any
	hasClaims  bool

	open bool // a limiter failed, and the request passes
}

// entry is a rule that applies to the request.
type entry struct {
	*rule
	cost     float64
	network  netip.Addr // the key, if the rule's limiter is one of addresses
	key      string     // or else; a view of call.keys
	missing  string     // the key that the request lacks and the rule insists on
	refuses  bool
	decision tb.Decision

	// The charge is one of these, by the kind of the rule's limiter.
	addrCharge   cas.Charge[netip.Addr]
	stringCharge cas.Charge[string]
	external     externalCharge
	index        int // of the charge in call.charges

	level    tb.Level // after the decision
	hasLevel bool
}

func (l *Limiter) begin(r *http.Request) *call {
	c := l.calls.Get().(*call)
	c.r, c.program = r, l.program.Load()
	return c
}

// end gives the call back. Nothing of the request is kept, nor any limiter.
func (c *call) end() {
	clear(c.entries)
	clear(c.charges)
	c.perRequest = perRequest{}
	c.entries, c.keys, c.charges = c.entries[:0], c.keys[:0], c.charges[:0]
	c.decisions, c.text = c.decisions[:0], c.text[:0]
	c.l.calls.Put(c)
}

// client returns the address of the client.
func (c *call) client() netip.Addr {
	if !c.hasAddress {
		c.address, c.hasAddress = c.l.address.client(c.r), true
	}
	return c.address
}

// network returns the part of the client's address that has one bucket.
func (c *call) network() netip.Addr { return c.l.address.Network(c.client()) }

func (c *call) claim(name string) any {
	if !c.hasClaims {
		c.hasClaims = true
		if c.claims = c.l.claims(c.r); c.claims == nil && c.program.unverifiedJWT {
			c.claims = unverified(c.r)
		}
	}
	return c.claims[name]
}

// outcome is what becomes of a request.
type outcome int

const (
	granted outcome = iota
	refused
	lacking // a key is missing
	failed  // and the limiter fails closed
)

// decide charges the rules that apply, all of them or none.
func (c *call) decide() outcome {
	c.find()
	if len(c.entries) == 0 {
		return granted
	}
	c.now = c.l.now()
	if e := c.lacks(); e != nil {
		c.count(e).refused.Add(1)
		e.decision = tb.Decision{RetryAfter: tb.Never}
		c.tell(c.l.hooks.Refused, e, nil)
		return lacking
	}
	allowed, broken, err := c.take()
	switch {
	case err != nil:
		c.count(broken).errors.Add(1)
		c.tell(c.l.hooks.Error, broken, err)
		// To hang up, so that the limiter's own call is cancelled, is no way past it.
		if c.l.failClosed || errors.Is(c.r.Context().Err(), context.Canceled) {
			return failed
		}
		c.open = true
	case !allowed:
		for e := range c.enforced() {
			if e.refuses {
				c.count(e).refused.Add(1)
			}
		}
		return refused
	}
	c.shadows()
	if c.open {
		return granted
	}
	for e := range c.enforced() {
		c.count(e).granted.Add(1)
	}
	return granted
}

// enforced yields the entries that are not of shadow rules.
func (c *call) enforced() func(func(*entry) bool) {
	return func(yield func(*entry) bool) {
		for i := range c.entries {
			if e := &c.entries[i]; !e.Shadow && !yield(e) {
				return
			}
		}
	}
}

func (c *call) lacks() *entry {
	for e := range c.enforced() {
		if e.missing != "" {
			return e
		}
	}
	return nil
}

// take charges the rules that are not shadow rules. If a limiter fails, which is that of
// the entry returned, nothing is charged.
func (c *call) take() (allowed bool, broken *entry, err error) {
	for k := c.program.first; k <= own; k++ {
		for e := range c.enforced() {
			if e.kind() == k {
				e.prepare(c.r.Context())
				e.index = len(c.charges)
				c.charges = append(c.charges, e.charge())
				c.decisions = append(c.decisions, tb.Decision{})
			}
		}
	}
	allowed, err = tb.TakeAll(c.now, c.charges, c.decisions)
	for e := range c.enforced() {
		e.decision = c.decisions[e.index]
		e.refuses = !e.decision.Allowed
		if e.external.err != nil {
			broken = e
		}
	}
	return allowed, broken, err
}

// shadows charges the shadow rules, each by itself, and tells what they would have done.
func (c *call) shadows() {
	for i := range c.entries {
		e := &c.entries[i]
		if !e.Shadow {
			continue
		}
		var err error
		if e.missing != "" {
			e.decision = tb.Decision{RetryAfter: tb.Never}
		} else {
			e.prepare(c.r.Context())
			e.decision, err = e.charge().Take(c.now)
		}
		switch {
		case err != nil:
			c.count(e).errors.Add(1)
			c.tell(c.l.hooks.Error, e, err)
			continue
		case e.decision.Allowed:
			c.count(e).shadowGranted.Add(1)
		default:
			c.count(e).shadowRefused.Add(1)
		}
		c.tell(c.l.hooks.Shadow, e, nil)
	}
}

func (c *call) tell(hook func(*http.Request, Event), e *entry, err error) {
	if hook != nil {
		hook(c.r, Event{Decision: e.answer(), Key: c.keyParts(e.rule), Shadow: e.Shadow, Err: err})
	}
}

func (e *entry) answer() Decision {
	return Decision{Decision: e.decision, Rule: e.label, Limit: e.Limit, Cost: e.cost}
}

// keyParts returns the parts of the key that the request has for a rule.
func (c *call) keyParts(r *rule) []KeyPart {
	parts := make([]KeyPart, len(r.sources))
	for i := range r.sources {
		parts[i] = KeyPart{r.sources[i].name, r.sources[i].readable(c)}
	}
	return parts
}
