package policy

import (
	"errors"
	"time"

	"github.com/seed-181794aa/ratelimit/adapt"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Adaptive makes the rate of a rule follow what the downstream answers: see package adapt. The rate
// of Rule.Limit, which must be between Min and Max, is the first one. The burst stays. The zero
// value is a fixed rate.
//
// The rate adapts to the responses that pass through Middleware or Settlement.Writer of httplimit:
// to the time from the grant to the header of the response, and to the share of the statuses 429,
// 502, 503 and 504. A shadow rule keeps its rate, because its decisions do not change the load of
// the downstream.
type Adaptive struct {
	Min, Max  float64       // tokens a second: see adapt.Config
	TargetP99 time.Duration // of the downstream's latency
}

// unreadAdaptive is the Adaptive of a rule whose own could not be read, which is an error already.
var unreadAdaptive = Adaptive{Min: -1}

// AdaptConfig returns the configuration of the controller of the rule's rate, on no clock yet.
func (r *Rule) AdaptConfig() adapt.Config {
	return adapt.Config{
		Capacity: r.Limit.Capacity, Min: r.Adaptive.Min, Max: r.Adaptive.Max,
		Start: float64(r.Limit.Tokens) / r.Limit.Per.Seconds(), TargetP99: r.Adaptive.TargetP99,
	}
}

func (r *Rule) checkAdaptive(path Path, errs *Problems) {
	a := r.Adaptive
	if a == (Adaptive{}) || a == unreadAdaptive || r.Limit.Validate() != nil {
		return
	}
	config := path.Field("algorithm_config")
	path = config.Field("adaptive")
	if len(r.Tiers.Limits) > 0 {
		errs.Add(path, "must not be in a rule with tiers")
	}
	if r.OnLimit == Delay {
		errs.Add(path, "must not be in a rule with on_limit delay, because requests that wait have "+
			"delays of an old rate")
	}
	if len(r.Levels()) > 1 {
		errs.Add(path, "must not be in a rule with a key that has parent networks")
	}
	c := r.AdaptConfig()
	rate := c.Start
	c.Start = 0 // the document has another name for it
	var bad *tb.ConfigError
	if errors.As(c.Validate(), &bad) {
		name := map[string]string{"Min": "min", "Max": "max", "TargetP99": "target_p99"}[bad.Field]
		if name != "" {
			path = path.Field(name)
		}
		errs.Add(path, "must be %s (got %v)", bad.Range, bad.Value)
		return
	}
	if !(rate >= a.Min && rate <= a.Max) {
		errs.Add(config.Field("tokens_per_second"), "must be between min and max of adaptive, "+
			"because it is the first rate (got %v, want %v to %v)", rate, a.Min, a.Max)
	}
}

func (w *warner) adaptive(s *RuleSet, r *Rule, path Path) {
	if r.Adaptive != (Adaptive{}) && s.enforces(r) && len(r.Keys) > 0 {
		w.Add(path.Field("algorithm_config").Field("adaptive"), "changes the rate of all keys "+
			"together, so the downstream gets up to max from each key: a rule without limit_keys bounds "+
			"the sum")
	}
}
