package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"
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
	p := o.policy()
	o.checkUnknown()
	r.errs = append(r.errs, check(p)...)
	if err := errors.Join(r.errs...); err != nil {
		return nil, fmt.Errorf("httplimit: policy:\n%w", err)
	}
	return p, nil
}

// policy reads a document of any of the three forms.
func (o *object) policy() *Policy {
	p := &Policy{}
	if !o.has("rules") && !o.has("policies") {
		r := o.rule("")
		r.alone = true
		p.Sets = []RuleSet{{Rules: []Rule{r}}}
		return p
	}
	p.UnverifiedJWT = o.choice("jwt", verifications...) == 1
	p.MaxWaiting = o.wholeNumber("max_waiting", mostWaiting)
	p.Except = o.exceptions()
	if o.has("rules") {
		p.Sets = []RuleSet{o.set()}
		return p
	}
	o.bundle()
	if o.isEmptyArray("policies") {
		o.add("policies", "must not be empty, because nothing would be limited")
	}
	o.objects("policies", func(e *object) {
		id := e.text("id")
		e.require("spec")
		s := RuleSet{path: e.path.Field("spec")}
		e.object("spec", func(spec *object) { s = spec.set() })
		s.Name = id
		p.Sets = append(p.Sets, s)
	})
	return p
}

// bundle reads the fields of a bundle other than its policies.
func (o *object) bundle() {
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

func (o *object) set() RuleSet {
	s := RuleSet{path: o.path}
	o.object("selector", func(sel *object) { s.Selector = sel.selector() })
	s.Evaluation = Evaluation(o.choice("evaluation", evaluations...))
	s.Shadow = o.choice("mode", modes...) == 1
	o.require("rules")
	if o.isEmptyArray("rules") && !o.has(fallbackName) {
		o.add("rules", "must not be empty without %s, because nothing would be limited", fallbackName)
	}
	o.objects("rules", func(e *object) { s.Rules = append(s.Rules, e.rule("")) })
	o.object(fallbackName, func(f *object) {
		r := f.rule(fallbackName)
		s.Fallback = &r
	})
	return s
}

func (o *object) selector() Selector {
	return Selector{
		Hosts: o.texts("hosts", "h"), Methods: o.texts("methods", "M"),
		PathExact: o.text("pathExact"), PathPrefix: o.text("pathPrefix"),
	}
}

func (o *object) exceptions() (all []Exception) {
	if o.isEmptyArray("except") {
		o.add("except", "must not be empty")
	}
	o.objects("except", func(e *object) {
		all = append(all, Exception{e.selector(), e.texts(addressKey, "192.0.2.")})
	})
	return all
}

// rule reads a rule. name is the name of a rule that may be without one, or "".
func (o *object) rule(name string) Rule {
	r := Rule{Name: name, Limit: unreadLimit}
	if name == "" || o.has("name") {
		r.Name = o.text("name")
	}
	if !o.has("limit_keys") {
		o.add("limit_keys", "is missing ([] means one bucket for all requests)")
	}
	r.Keys = o.texts("limit_keys", "query:")
	r.Match = o.match()
	r.Except = o.exceptions()
	r.OnMissing = OnMissing(o.choice("on_missing", missings...))
	r.Shadow = o.choice("mode", modes...) == 1
	r.OnLimit = OnLimit(o.choice("on_limit", actions...))
	r.MaxDelay = o.duration("max_delay")
	r.Block = o.duration("block")
	r.Priority = o.priority()
	o.choice("algorithm", "token_bucket")
	o.require("algorithm_config")
	o.object("algorithm_config", func(c *object) {
		smallBurst := r.OnLimit == Delay || c.has("adaptive")
		r.Limit = c.limit(smallBurst)
		r.Adaptive = c.adaptive()
		c.object("tiers", func(t *object) {
			t.require("by")
			t.require("limits")
			r.Tiers.By = t.text("by")
			r.Tiers.Limits = map[string]tb.Limit{}
			t.object("limits", func(all *object) {
				for _, name := range all.names {
					r.Tiers.Limits[name] = unreadLimit
					all.object(name, func(c *object) { r.Tiers.Limits[name] = c.limit(smallBurst) })
				}
			})
		})
		source, ok := take[string](c, "cost_source", "a string")
		if ok && source == "" { // in Go it means fixed
			c.add("cost_source", wantCostSource, source)
		}
		r.Cost = Cost{
			Source: source,
			Fixed:  c.cost("fixed_cost"), Default: c.cost("default_cost"),
			Min: c.cost("min_cost"), Max: c.cost("max_cost"),
		}
		c.object("status_costs", func(all *object) {
			r.Cost.Statuses = map[string]float64{}
			for _, status := range all.names {
				r.Cost.Statuses[status] = all.costOrNone(status)
			}
		})
		r.Cost.HideHeader, _ = take[bool](c, "hide_cost_header", "true or false")
	})
	return r
}

// match reads values that are compared as text. They may be strings, numbers or booleans.
func (o *object) match() map[string]string {
	m, ok := take[*object](o, "match", "an object")
	if !ok {
		return nil
	}
	pairs := map[string]string{}
	for _, name := range m.names {
		switch v := m.values[name].(type) {
		case string:
			pairs[name] = v
		case json.Number:
			pairs[name] = v.String()
		case bool:
			pairs[name] = strconv.FormatBool(v)
		default:
			m.add(name, "must be a string, number or boolean (got %s)", kindOf(v))
		}
	}
	return pairs
}

func (o *object) cost(name string) float64 {
	if x := o.positive(name); x != nil {
		f, _ := x.Float64()
		return f
	}
	return 0
}

// costOrNone is cost for a field that may be 0.
func (o *object) costOrNone(name string) float64 {
	x := o.number(name)
	if x == nil {
		return 0
	}
	if x.Sign() < 0 {
		o.add(name, "must be >= 0 (got %s)", short(x))
		return 0
	}
	f, _ := x.Float64()
	return f
}

// wholeNumber reads a number from 1 to most. It returns 0 if the field is missing or has an error.
func (o *object) wholeNumber(name string, most int64) int {
	x := o.positive(name)
	if x != nil && (!x.IsInt() || x.Cmp(big.NewRat(most, 1)) > 0) {
		o.add(name, "must be a whole number, 1 to %d (got %s)", most, short(x))
		x = nil
	}
	if x == nil {
		return 0
	}
	return int(x.Num().Int64())
}

// limit reads the rate and the burst. It returns unreadLimit if one of them has an error.
func (o *object) limit(smallBurst bool) tb.Limit {
	name := "tokens_per_second"
	switch {
	case o.has(name) && o.has("rps"):
		o.positive("rps")
	case o.has("rps"):
		name = "rps"
	case !o.has(name):
		o.add(name, "is missing, and so is its alias rps")
	}
	rate := o.positive(name)
	capacity, ok := o.burst(rate, smallBurst)
	if rate == nil {
		return unreadLimit
	}
	limit, err := perDuration(rate)
	if err != nil {
		o.add(name, "must be from 1 token in 292 years to 1e9 tokens a second (got %s)", short(rate))
	}
	if err != nil || !ok {
		return unreadLimit
	}
	limit.Capacity = capacity
	return limit
}

// burst reads the capacity. The rate is nil if it could not be read. A rule must have a burst of a
// second at least, unless it delays, to even out requests, or its rate adapts.
func (o *object) burst(rate *big.Rat, small bool) (capacity int, ok bool) {
	o.require("burst")
	x := o.number("burst")
	if x == nil {
		return 0, false
	}
	got, before := short(x), len(o.errs)
	if !x.IsInt() {
		o.add("burst", "must be a whole number of tokens (got %s)", got)
	}
	switch {
	case rate != nil && x.Cmp(rate) < 0 && !small:
		o.add("burst", "must be >= tokens_per_second (got %s, want >= %s)", got, short(rate))
	case x.Sign() <= 0:
		o.add("burst", "must be > 0 (got %s)", got)
	case x.Cmp(big.NewRat(tb.MaxCapacity, 1)) > 0:
		o.add("burst", "must be at most %d (got %s)", tb.MaxCapacity, got)
	}
	return int(x.Num().Int64()), len(o.errs) == before
}

// exactDecimals is how many decimals a rate has at most if it is exact.
const exactDecimals = 9

// perDuration returns a limit without a capacity. Its rate in tokens a second is the decimal of the
// document if that has up to 9 decimals, and otherwise the simplest fraction that is the same
// float64: 0.3333333333333333 is a third.
func perDuration(rate *big.Rat) (tb.Limit, error) {
	ns := new(big.Int).Mul(rate.Denom(), big.NewInt(int64(time.Second)))
	if decimals, _ := rate.FloatPrec(); decimals <= exactDecimals && rate.Num().Cmp(ns) <= 0 {
		return tb.Limit{Tokens: rate.Num().Int64(), Per: time.Duration(ns.Int64())}, nil
	}
	f, _ := rate.Float64()
	return tb.LimitPerSecond(1, f)
}
