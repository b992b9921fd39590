package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
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
	const empty = "must not be empty, because nothing would be limited"
	list(o, "policies", empty, &p.Sets, RuleSet{}, func(e *object, s *RuleSet) {
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
	empty := "must not be empty without " + fallbackName + ", because nothing would be limited"
	if o.has(fallbackName) {
		s.Fallback, empty = &Rule{Name: fallbackName, Limit: unreadLimit}, ""
	}
	list(o, "rules", empty, &s.Rules, Rule{Limit: unreadLimit}, (*object).rule)
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
	list(o, "except", "must not be empty", all, Exception{}, func(e *object, x *Exception) {
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

// unreadLimit is the limit of a rule whose own could not be read, which is an error already.
var unreadLimit = tb.Limit{Capacity: -1}

// limit is the rate and the burst. A limit in which one of them has an error is unreadLimit.
func (o *object) limit(l *tb.Limit, smallBurst bool) {
	if o.writes {
		o.put("tokens_per_second", rateNumber(*l), true)
		o.put("burst", l.Capacity, true)
		return
	}
	name := "tokens_per_second"
	switch {
	case o.has(name) && o.has("rps"):
		o.number("rps", above0)
	case o.has("rps"):
		name = "rps"
	case !o.has(name):
		o.add(name, "is missing, and so is its alias rps")
	}
	rate := o.number(name, above0)
	capacity, ok := o.burst(rate, smallBurst)
	if rate == nil {
		return
	}
	limit, err := perDuration(rate)
	if err != nil {
		o.add(name, "must be from 1 token in 292 years to 1e9 tokens a second (got %s)", short(rate))
	} else if ok {
		limit.Capacity = capacity
		*l = limit
	}
}

// burst reads the capacity. The rate is nil if it could not be read. A rule must have a burst of a
// second at least, unless it delays, to even out requests, or its rate adapts.
func (o *object) burst(rate *big.Rat, small bool) (capacity int, ok bool) {
	o.require("burst")
	x := o.number("burst", anyNumber)
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

// rateNumber returns a number of which perDuration makes the rate of a limit: the rate itself if it
// has few decimals, or else the nearest float64. It adds decimals to a float64 that has few ones,
// because perDuration would take it for the rate itself.
func rateNumber(l tb.Limit) json.Number {
	if l.Per <= 0 { // which is not valid
		return "0"
	}
	rate := big.NewRat(l.Tokens, int64(l.Per))
	rate.Mul(rate, big.NewRat(int64(time.Second), 1))
	if decimals, exact := rate.FloatPrec(); exact && decimals <= exactDecimals {
		return json.Number(rate.FloatString(decimals))
	}
	f, _ := rate.Float64()
	text := strconv.FormatFloat(f, 'f', -1, 64)
	if _, decimals, _ := strings.Cut(text, "."); len(decimals) <= exactDecimals {
		text = rate.FloatString(2 * exactDecimals)
	}
	return json.Number(text)
}
