package httplimit

import (
	"iter"
	"net/http"
	"net/netip"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// call is the work on one request. begin takes it from a pool, and end puts it back, after the
// settlement if there is one. doc.go names the files that it goes through.
type call struct {
	l      *Limiter
	stripe uint32
	perRequest

	entries   []entry // the rules that apply
	keys      []byte  // the keys of entries are views of it
	charges   []tb.Charge
	decisions []tb.Decision
	text      []byte // of header fields
}

type perRequest struct {
	r      *http.Request
	w      http.ResponseWriter // nil in Explain and Take
	header http.Header         // of the response; may be nil
	policy *compiled
	now    time.Time

	address         netip.Addr
	hasAddress      bool
	claims          map[string]any
	hasClaims       bool
	ambiguousClaims bool // the claims come from one of several tokens

	patience time.Duration // how long the request may wait; 0 for not at all
	delay    time.Duration // the longest of the enforced rules
	slowest  *entry        // whose delay it is

	failedOpen bool // the store failed, and the request passes
}

type entry struct {
	*rule
	cost      float64 // the estimate, until a settlement knows the actual one
	known     bool    // the actual cost
	refused   bool
	fault     fault // why the request is refused whatever the bucket holds
	faultyKey string
	keeps     float64 // the tokens that must be left
	key       string  // a view of call.keys
	decision  tb.Decision
	delay     time.Duration // of the charge that was taken
	place     uint64        // among the requests that wait, from 1 on; 0 if e's rule does not delay

	charge   tb.StoreCharge // the next one, which is inMemory if the store is a Memory
	inMemory cas.Charge[string]

	level tb.Level // after the decision; zero until the bucket is asked
}

func (l *Limiter) begin(r *http.Request) *call {
	c := l.calls.Get().(*call)
	c.r, c.policy = r, l.policy.Load()
	return c
}

// end puts c back into the pool. It keeps nothing of the request, and no limiter.
func (c *call) end() {
	clear(c.entries)
	clear(c.charges)
	c.perRequest = perRequest{}
	c.entries, c.keys, c.charges = c.entries[:0], c.keys[:0], c.charges[:0]
	c.decisions, c.text = c.decisions[:0], c.text[:0]
	c.l.calls.Put(c)
}

func (c *call) client() netip.Addr {
	if !c.hasAddress {
		c.address, c.hasAddress = c.l.ClientAddress(c.r), true
	}
	return c.address
}

func (c *call) claim(name string) any {
	if !c.hasClaims {
		c.hasClaims = true
		if c.l.claims != nil {
			c.claims = c.l.claims(c.r)
		}
		if c.claims == nil && c.policy.unverifiedJWT {
			c.claims, c.ambiguousClaims = unverifiedClaims(c.l.header(c.r, "Authorization"))
		}
	}
	return c.claims[name]
}

type outcome int

const (
	granted outcome = iota
	refused
	faulty // a key is missing or repeated, or servers read the path differently
	failed // the store failed, and the request must not pass
	gone   // the request ended while it waited
	early  // data of HTTP/3 has an address that may be forged
)

func (c *call) enforced() iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for i := range c.entries {
			if e := &c.entries[i]; !e.Shadow && !yield(e) {
				return
			}
		}
	}
}

func (c *call) firstFault() *entry {
	for i := range c.entries {
		if e := &c.entries[i]; e.fault != noFault && !e.Shadow {
			return e
		}
	}
	return nil
}

func (c *call) runHook(hook func(*http.Request, Event), e *entry, err error) {
	if hook != nil {
		hook(c.r, Event{e.toDecision(), c.keyParts(e.rule), e.Shadow, err, c.w})
	}
}

func (e *entry) toDecision() Decision {
	if e == nil {
		return Decision{}
	}
	return Decision{
		Decision: e.decision, Rule: e.label, Limit: e.Limit, Cost: e.cost, Delay: e.delay,
	}
}
