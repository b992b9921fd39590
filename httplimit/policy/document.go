package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// The names of choices, in the order of their constants. The first one is the default.
var (
	verifications = []string{"context", "unverified"}
	evaluations   = []string{"ladders", "all_match", "first_match"}
	modes         = []string{"enforce", "shadow"}
	missings      = []string{"skip", "reject", "shared"}
	actions       = []string{"refuse", "delay"}
)

// Parse reads a policy in the format of docs/policy.md: one rule, rules, or a bundle. The
// error joins everything that is wrong, each with its path, as in
//
//	rules[1].algorithm_config.burst must be >= tokens_per_second (got 5, want >= 10)
//
// It does not check that every key has an extractor: httplimit.ParsePolicyFor and httplimit.New do.
// Policy.Warnings returns what is valid and probably not meant.
func Parse(data []byte) (*Policy, error) { return ParseWith(data, (*Policy).Check) }

// ParseWith is Parse with a check that finds more than Policy.Check does. The check gets what could
// be read of the policy. Policy.Check is not called.
func ParseWith(data []byte, check func(*Policy) Problems) (*Policy, error) {
	r := &reader{}
	o, err := r.document(data)
	if err != nil {
		return nil, fmt.Errorf("httplimit: policy: %w", err)
	}
	p := &Policy{}
	if o.has("rules") || o.has("policies") {
		o.policy(p, !o.has("rules"))
	} else {
		alone := Rule{Limit: unreadLimit, alone: true}
		o.rule(&alone)
		p.Sets = []RuleSet{{Rules: []Rule{alone}}}
	}
	o.checkUnknown()
	r.errs = append(r.errs, check(p)...)
	if err := errors.Join(r.errs...); err != nil {
		return nil, fmt.Errorf("httplimit: policy:\n%w", err)
	}
	return p, nil
}

// UnmarshalJSON is Parse.
func (p *Policy) UnmarshalJSON(data []byte) error {
	parsed, err := Parse(data)
	if err == nil {
		*p = *parsed
	}
	return err
}

// MarshalJSON returns a document in the format of docs/policy.md, of which Parse makes the
// same policy. It writes what the policy says, valid or not: Parse checks the document. A
// rate that is neither a decimal number nor the simplest fraction of one is written as a number
// that is nearly the same, and a text that is not UTF-8 as encoding/json writes it.
func (p Policy) MarshalJSON() ([]byte, error) {
	o := newObject(&reader{writes: true}, "")
	o.policy(&p, len(p.Sets) != 1 || p.Sets[0].Name != "")
	return json.Marshal(o)
}

// policy takes the fields of a policy, and each method below the fields of one of its parts: it
// reads or writes them, as the methods for fields do.
func (o *object) policy(p *Policy, isBundle bool) {
	o.either("jwt", &p.UnverifiedJWT, verifications)
	o.whole("max_waiting", &p.MaxWaiting, mostWaiting)
	o.exceptions(&p.Except)
	if !isBundle {
		if !o.writes {
			p.Sets = make([]RuleSet, 1)
		}
		o.set(&p.Sets[0])
		return
	}
	o.ignored()
	o.require("policies")
	o.notEmpty("policies", "must not be empty, because nothing would be limited")
	list(o, "policies", &p.Sets, RuleSet{}, func(e *object, s *RuleSet) {
		if e.writes {
			e.require("id")
		} else {
			s.path = e.path.Field("spec")
		}
		e.text("id", &s.Name)
		e.require("spec")
		e.object("spec", func(spec *object) { spec.set(s) })
	})
}

// ignored takes the fields of a bundle that say nothing about limits.
func (o *object) ignored() {
	take[json.Number](o, "bundle_version", "a number")
	for _, name := range []string{"issued_at", "expires_at"} {
		if s, ok := take[string](o, name, "a string"); ok {
			if _, err := time.Parse(time.RFC3339, s); err != nil {
				o.add(name, "must be a time such as 2026-01-31T00:00:00Z (got %q)", s)
			}
		}
	}
	if switches, ok := take[[]any](o, "kill_switches", "an array"); ok && len(switches) > 0 {
		o.add("kill_switches", "are not supported")
	}
}

func (o *object) set(s *RuleSet) {
	o.object("selector", func(sel *object) { sel.selector(&s.Selector) })
	choice(o, "evaluation", &s.Evaluation, evaluations)
	o.either("mode", &s.Shadow, modes)
	o.require("rules")
	if o.has(fallbackName) {
		s.Fallback = &Rule{Name: fallbackName, Limit: unreadLimit}
	} else {
		o.notEmpty("rules", "must not be empty without "+fallbackName+", because nothing would be "+
			"limited")
	}
	list(o, "rules", &s.Rules, Rule{Limit: unreadLimit}, (*object).rule)
	if s.Fallback != nil {
		o.object(fallbackName, func(f *object) { f.rule(s.Fallback) })
	}
}

func (o *object) selector(s *Selector) {
	o.texts("hosts", &s.Hosts, "h")
	o.texts("methods", &s.Methods, "M")
	o.text("pathExact", &s.PathExact)
	o.text("pathPrefix", &s.PathPrefix)
}

func (o *object) exceptions(all *[]Exception) {
	o.notEmpty("except", "must not be empty")
	list(o, "except", all, Exception{}, func(e *object, x *Exception) {
		e.selector(&x.Selector)
		e.texts(addressKey, &x.Networks, "192.0.2.")
	})
}

// rule takes a rule. A fallback has its name already, and may be without one.
func (o *object) rule(r *Rule) {
	if o.writes {
		o.require("name")
	}
	if o.has("name") {
		o.text("name", &r.Name)
	}
	o.requireOr("limit_keys", "is missing ([] means one bucket for all requests)")
	o.texts("limit_keys", &r.Keys, "query:")
	o.object("match", func(m *object) { entries(m, &r.Match, "unread", m.scalar) })
	o.exceptions(&r.Except)
	choice(o, "on_missing", &r.OnMissing, missings)
	o.either("mode", &r.Shadow, modes)
	choice(o, "on_limit", &r.OnLimit, actions)
	o.duration("max_delay", &r.MaxDelay)
	o.duration("block", &r.Block)
	o.object("priority", func(c *object) {
		c.require("by", "keep")
		c.text("by", &r.Priority.By)
		c.object("keep", func(all *object) { entries(all, &r.Priority.Keep, 0, all.float0) })
	})
	choice(o, "algorithm", new(int), []string{"token_bucket"})
	o.require("algorithm_config")
	o.object("algorithm_config", func(c *object) {
		smallBurst := r.OnLimit == Delay || c.has("adaptive")
		c.limit(&r.Limit, smallBurst)
		c.cost(&r.Cost)
		c.tiers(&r.Tiers, smallBurst)
		c.adaptive(&r.Adaptive)
	})
}

func (o *object) cost(c *Cost) {
	if source, ok := o.values["cost_source"].(string); ok && source == "" { // in Go it means fixed
		o.add("cost_source", wantCostSource, source)
	}
	o.text("cost_source", &c.Source)
	o.float("fixed_cost", &c.Fixed, above0)
	o.float("default_cost", &c.Default, above0)
	o.float("min_cost", &c.Min, above0)
	o.float("max_cost", &c.Max, above0)
	o.object("status_costs", func(all *object) { entries(all, &c.Statuses, 0, all.float0) })
}

func (o *object) tiers(t *Tiers, smallBurst bool) {
	o.object("tiers", func(c *object) {
		c.require("by", "limits")
		c.text("by", &t.By)
		c.object("limits", func(all *object) {
			entries(all, &t.Limits, unreadLimit, func(name string, l *tb.Limit) {
				all.object(name, func(c *object) { c.limit(l, smallBurst) })
			})
		})
	})
}

func (o *object) adaptive(a *Adaptive) {
	before := len(o.errs)
	o.object("adaptive", func(c *object) {
		c.require("min", "max", "target_p99")
		c.float("min", &a.Min, above0)
		c.float("max", &a.Max, above0)
		c.duration("target_p99", &a.TargetP99)
	})
	if len(o.errs) > before {
		*a = unreadAdaptive
	}
}
