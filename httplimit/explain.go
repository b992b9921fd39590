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
	Key []KeyPart // of the bucket, as in Event
	// Level is how full the bucket is now. It is the zero tb.Level, which no bucket has,
	// if the limiter does not report it.
	Level  tb.Level
	Shadow bool
	// MissingKey is the key that the request lacks and is refused for, or "".
	MissingKey string
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
		x := Explanation{Key: c.keyParts(e.rule), Shadow: e.Shadow, MissingKey: e.missing}
		if e.missing != "" {
			e.decision = tb.Decision{RetryAfter: tb.Never}
		} else if e.kind() != unknown {
			e.prepare(r.Context())
			e.decision, _ = e.charge().Check(c.now) // an error leaves the zero Decision
			x.Level, _ = e.readLevel(c.now)
		}
		x.Decision = e.answer()
		all = append(all, x)
	}
	return all
}
