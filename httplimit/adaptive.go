package httplimit

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/adapt"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Adaptive makes the rate of a rule follow what the downstream answers: see package adapt. The rate
// starts at that of Rule.Limit, which must be between Min and Max. The burst stays. The zero value
// is a fixed rate.
//
// The rate adapts to the responses that pass through Middleware or Settlement.Writer. Decide sees
// none, so after Decide the rate stays as it is. The latency of a request is the time from its
// grant to the header of its response, because the time that a body takes also depends on its
// length and on the client. A response with status 429, 502, 503 or 504 is a failure.
//
// A shadow rule keeps its rate, because its decisions do not change the load of the downstream. A
// rule that delays cannot be adaptive: its requests would wait for as long as an old rate demands,
// and so reach the downstream in waves.
type Adaptive struct {
	Min, Max  float64       // tokens a second: see adapt.Config
	TargetP99 time.Duration // of the downstream's latency
}

// unreadAdaptive is the Adaptive of a rule whose own could not be read, which is an error already.
var unreadAdaptive = Adaptive{Min: -1}

// adaptive reads the range of an adaptive rate.
func (o *object) adaptive() (a Adaptive) {
	before := o.errs.count
	o.object("adaptive", func(c *object) {
		for _, name := range []string{"min", "max", "target_p99"} {
			c.require(name)
		}
		a = Adaptive{c.cost("min"), c.cost("max"), c.duration("target_p99")}
	})
	if o.errs.count > before {
		return unreadAdaptive
	}
	return a
}

// adapts reports whether the rate of the rule changes.
func (r *Rule) adapts() bool { return r.Adaptive != Adaptive{} && !r.Shadow }

func (r *Rule) startRate() float64 { return float64(r.Limit.Tokens) / r.Limit.Per.Seconds() }

// checkAdaptive checks the range of a rule at path.
func (r *Rule) checkAdaptive(path string, errs *problems) {
	a := r.Adaptive
	if a == (Adaptive{}) || a == unreadAdaptive || r.Limit.Validate() != nil {
		return
	}
	config := field(path, "algorithm_config")
	path = field(config, "adaptive")
	if len(r.Tiers.Limits) > 0 {
		errs.add(path, "must not be in a rule with tiers")
	}
	if r.OnLimit == Delay {
		errs.add(path, "must not be in a rule with on_limit delay, because requests that wait have "+
			"delays of an old rate")
	}
	if len(r.levels()) > 1 {
		errs.add(path, "must not be in a rule with a key that has parent networks")
	}
	c := adapt.Config{Capacity: r.Limit.Capacity, Min: a.Min, Max: a.Max, TargetP99: a.TargetP99}
	var bad *tb.ConfigError
	if errors.As(c.Validate(), &bad) {
		name := map[string]string{"Min": "min", "Max": "max", "TargetP99": "target_p99"}[bad.Field]
		if name != "" {
			path = field(path, name)
		}
		errs.add(path, "must be %s (got %v)", bad.Range, bad.Value)
		return
	}
	if rate := r.startRate(); !(rate >= a.Min && rate <= a.Max) {
		errs.add(field(config, "tokens_per_second"), "must be between min and max of adaptive, "+
			"because it is the first rate (got %v, want %v to %v)", rate, a.Min, a.Max)
	}
}

// adaptive warns of a rate that does not adapt, or adapts for many clients at once.
func (w *warner) adaptive(s *RuleSet, r *Rule, path string) {
	path = field(field(path, "algorithm_config"), "adaptive")
	switch {
	case r.Adaptive == Adaptive{}:
	case !s.enforces(r):
		w.add(path, "has no effect in a shadow rule")
	case len(r.Keys) > 0:
		w.add(path, "changes the rate of all keys together, so the downstream gets up to max from "+
			"each key: a rule without limit_keys bounds the sum")
	}
}

// control moves the rate of a rule. Two controls of one limiter exist while a policy replaces
// another. Only one of them is running.
type control struct {
	*adapt.Controller
	limiter limitSetter
	current atomic.Pointer[rule] // the rule with its present limit

	mu    sync.Mutex
	phase phase
}

type phase int

const (
	fresh   phase = iota // the limiter has another limit
	running              // the control sets the limit
	stopped              // the limiter may have another control
)

var errStopped = errors.New("httplimit: another policy sets the limit")

// addControl gives r, which takes the place of old, the control of its rate. old may be nil.
func (l *Limiter) addControl(r, old *rule) error {
	if !r.adapts() {
		return nil
	}
	if old != nil && old.control != nil && old.ruleState == r.ruleState &&
		old.Adaptive == r.Adaptive && old.Limit == r.Limit {
		r.control = old.control
		return nil
	}
	setter, ok := r.limiter.(limitSetter)
	if !ok {
		return fmt.Errorf("rule %q: adaptive needs a limiter with SetLimit(tb.Limit) error", r.Name)
	}
	c := &control{limiter: setter}
	c.current.Store(r)
	var err error
	c.Controller, err = adapt.New(c, adapt.Config{
		Capacity: r.Limit.Capacity, Min: r.Adaptive.Min, Max: r.Adaptive.Max, Start: r.startRate(),
		TargetP99: r.Adaptive.TargetP99, Now: l.clock,
	})
	r.control = c
	return err
}

// SetLimit sets the limit of the rule's limiter, if the control is running.
func (c *control) SetLimit(limit tb.Limit) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.phase {
	case fresh: // adapt.New sets the limit that start sets
		return nil
	case stopped:
		return errStopped
	}
	if err := c.limiter.SetLimit(limit); err != nil {
		return err
	}
	c.setCurrent(limit)
	return nil
}

// setCurrent makes the rule with the limit the current one.
func (c *control) setCurrent(limit tb.Limit) {
	r := *c.current.Load()
	r.Limit = limit
	r.ruleText = newRuleText(r.label, &r.Rule)
	c.current.Store(&r)
}

// setPhase stops the control, or lets it go on.
func (c *control) setPhase(p phase) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.phase = p
}

// now returns the rule with its present limit.
func (r *rule) now() *rule {
	if r.control == nil {
		return r
	}
	return r.control.current.Load()
}

// startControls starts the controls of a policy that is used from now on.
func (p *compiled) startControls() {
	for _, r := range p.rules {
		if r.control != nil {
			r.control.start(r)
		}
	}
}

// start starts the control, or goes on with it, for a rule that may have another label than before.
func (c *control) start(r *rule) {
	c.mu.Lock()
	defer c.mu.Unlock()
	limit := c.current.Load().Limit
	c.current.Store(r)
	c.setCurrent(limit)
	c.phase = running
}
