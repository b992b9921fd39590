package httplimit

import (
	"net/http"
	"time"

	"github.com/seed-181794aa/ratelimit/httplimit/policy"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Explanation is the decision that a rule would make on a request.
type Explanation struct {
	// Decision is the decision of the rule by itself. It is the zero tb.Decision if the Store fails.
	Decision
	Key []KeyPart // of the bucket, as in Event
	// Level is how full the bucket is now. It is the zero tb.Level, which no bucket has, if the Store
	// fails.
	Level tb.Level
	// Tier is the name of the request's tier, or "" if it has the limit of the rule itself.
	Tier string
	// Class is the class of Priority that the request counts as: a name in Keep, or policy.AnyClass
	// for all others. It is "" if the rule has no classes, or refuses the request for a key.
	Class    string
	Shadow   bool
	Adaptive policy.Adaptive // the range of the rate, or zero if the rate is fixed
	MaxDelay time.Duration   // the longest delay, or 0 if the rule does not delay
	Block    time.Duration   // how long a refusal blocks the key, or 0
	Estimate bool            // Cost is an estimate, because the cost is in the response
	// MissingKey is the key that the request lacks, if the rule refuses the request for that,
	// or else "".
	MissingKey string
	// AmbiguousKey is the key that the request has more than once and is refused for, or
	// "path" if servers disagree about its path (see ResolvePath), or "".
	AmbiguousKey string
}

// Explain returns the rules that apply to a request, and takes nothing.
func (l *Limiter) Explain(r *http.Request) []Explanation {
	c := l.begin(r)
	defer c.end()
	c.findRules()
	c.now = l.clock()
	var all []Explanation
	for i := range c.entries {
		e := &c.entries[i]
		x := Explanation{
			Key: c.keyParts(e.rule), Tier: e.tierName, Shadow: e.Shadow, Adaptive: e.Adaptive,
			MaxDelay: e.MaxDelay, Block: e.Block, Estimate: e.price.inResponse,
		}
		switch e.fault {
		case isMissing:
			x.MissingKey = e.faultyKey
		case isRepeated, isUnclear:
			x.AmbiguousKey = e.faultyKey
		default:
			if e.classes != nil {
				x.Class = e.classes.of(c, e).name
			}
			if _, err := c.prepare(e); err == nil {
				// An error leaves the zero Decision and the zero Level.
				e.decision, _ = e.charge.Peek(c.now)
				c.explainDelay(e)
				if _, lacks, _ := c.lacksStanding(e); lacks {
					e.charge.HoldOnRefusal(e.Block)
					e.decision, _ = e.charge.Peek(c.now)
				}
				if level, err := e.charge.Level(c.now); err == nil && level.Full >= 0 {
					x.Level = level
				}
			}
		}
		x.Decision = e.toDecision()
		all = append(all, x)
	}
	return all
}
