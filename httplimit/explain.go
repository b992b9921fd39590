package httplimit

import (
	"net/http"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Explanation is what a rule that applies to a request would say.
type Explanation struct {
	// Decision is what the rule would answer by itself. It is the zero tb.Decision if
	// its limiter cannot be asked without taking, or cannot decide.
	Decision
	Key    []KeyPart // of the bucket, as in Event
	Shadow bool
	Lacks  bool // the request lacks a key, and is refused for it
}

// Explain returns the rules that apply to a request, and takes nothing.
func (l *Limiter) Explain(r *http.Request) []Explanation {
	c := l.begin(r)
	defer c.end()
	c.find()
	c.now = l.now()
	var all []Explanation
	for i := range c.entries {
		e := &c.entries[i]
		if charge := e.charge(e.cost); e.missing != "" {
			e.decision = tb.Decision{RetryAfter: tb.Never}
		} else if charge != nil {
			e.decision, _ = charge.Check(c.now) // those of tb/cas have no error
		}
		all = append(all,
			Explanation{e.answer(), c.keyParts(e.rule), e.Shadow, e.missing != ""})
	}
	return all
}
