package httplimit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// LoadPolicy is ParsePolicy of what it reads from r.
func LoadPolicy(r io.Reader) (*Policy, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("httplimit: %w", err)
	}
	return ParsePolicy(data)
}

// ParsePolicy reads a policy in the format of docs/policy.md: one rule, rules, or a
// bundle. The error joins everything that is wrong, each with its place, as in
//
//	rules[1].algorithm_config.burst must be >= tokens_per_second (got 5, want >= 10)
//
// New checks that every key has an extractor. Policy.Warnings returns what is probably not
// meant.
func ParsePolicy(data []byte) (*Policy, error) {
	r := &reader{}
	o, err := r.document(data)
	if err != nil {
		return nil, fmt.Errorf("httplimit: policy: %w", err)
	}
	p := o.policy()
	o.done()
	r.errs = append(r.errs, p.check()...)
	if len(r.errs) > 0 {
		return nil, fmt.Errorf("httplimit: policy:\n%w", errors.Join(r.errs...))
	}
	p.warnings = r.warnings
	return p, nil
}

// policy reads the document, in whichever of the three forms it is.
func (o *object) policy() *Policy {
	p := &Policy{}
	if !o.has("rules") && !o.has("policies") {
		r := o.rule("")
		r.alone = true
		p.Sets = []RuleSet{{Rules: []Rule{r}}}
		return p
	}
	if o.has("jwt") {
		p.UnverifiedJWT = o.choice("jwt", "context", "unverified") == 1
	}
	if o.has("rules") {
		p.Sets = []RuleSet{o.set()}
		return p
	}
	o.bundle()
	o.objects("policies", func(_ int, e *object) {
		id := e.text("id")
		if !e.has("spec") {
			e.add("spec", "is missing")
		}
		s := RuleSet{path: field(e.path, "spec")}
		if spec := e.object("spec"); spec != nil {
			s = spec.set()
			spec.done()
		}
		s.Name = id
		e.done()
		p.Sets = append(p.Sets, s)
	})
	return p
}

// bundle reads the fields of a bundle that are about the file.
func (o *object) bundle() {
	take[json.Number](o, "bundle_version", "a number")
	for _, name := range []string{"issued_at", "expires_at"} {
		if s, ok := take[string](o, name, "a string"); ok {
			if _, err := time.Parse(time.RFC3339, s); err != nil {
				o.add(name, "must be a time such as 2026-01-31T00:00:00Z (got %q)", s)
			} else if name == "expires_at" {
				o.warn(name, "is not enforced")
			}
		}
	}
	if switches, ok := take[[]any](o, "kill_switches", "an array"); ok && len(switches) > 0 {
		o.add("kill_switches", "are not supported")
	}
}

func (o *object) set() RuleSet {
	s := RuleSet{path: o.path}
	if sel := o.object("selector"); sel != nil {
		s.Selector = Selector{
			Hosts: sel.texts("hosts"), Methods: sel.texts("methods"),
			PathExact: sel.text("pathExact"), PathPrefix: sel.text("pathPrefix"),
		}
		sel.done()
	}
	s.Evaluation = Evaluation(o.choice("evaluation", "ladders", "all_match", "first_match"))
	s.Shadow = o.choice("mode", "enforce", "shadow") == 1
	if !o.has("rules") {
		o.add("rules", "is missing")
	}
	o.objects("rules", func(_ int, e *object) {
		s.Rules = append(s.Rules, e.rule(""))
		e.done()
	})
	if f := o.object(fallbackName); f != nil {
		r := f.rule(fallbackName)
		s.Fallback = &r
		f.done()
	}
	return s
}

// rule reads a rule, which has this name if it does not say.
func (o *object) rule(name string) Rule {
	r := Rule{Name: name, Limit: unread}
	if name == "" || o.has("name") {
		r.Name = o.text("name")
	}
	if !o.has("limit_keys") {
		o.add("limit_keys", "is missing ([] means one bucket for everybody)")
	}
	r.Keys = o.texts("limit_keys")
	r.Match = o.match()
	r.OnMissing = OnMissing(o.choice("on_missing", "skip", "reject", "shared"))
	r.Shadow = o.choice("mode", "enforce", "shadow") == 1
	o.choice("algorithm", "token_bucket")
	if !o.has("algorithm_config") {
		o.add("algorithm_config", "is missing")
	}
	c := o.object("algorithm_config")
	if c == nil {
		return r
	}
	r.Limit = c.limit()
	source, ok := take[string](c, "cost_source", "a string")
	if ok && source == "" { // which means fixed in Go
		c.add("cost_source", wantCostSource, source)
	}
	r.Cost = Cost{
		Source: source,
		Fixed:  c.cost("fixed_cost"), Default: c.cost("default_cost"),
		Min: c.cost("min_cost"), Max: c.cost("max_cost"),
	}
	c.done()
	return r
}

// match reads values that are compared as text, and may be written as what they are.
func (o *object) match() map[string]string {
	m := o.object("match")
	if m == nil {
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
	x := o.positive(name)
	if x == nil {
		return 0
	}
	f, _ := x.Float64()
	return f
}

// limit reads the rate and the burst, or returns unread.
func (o *object) limit() tb.Limit {
	name := "tokens_per_second"
	switch {
	case o.has(name) && o.has("rps"):
		o.warn(field(o.path, "rps"), "is ignored, because there is tokens_per_second")
		o.positive("rps")
	case o.has("rps"):
		name = "rps"
	case !o.has(name):
		o.add(name, "is missing, and so is its alias rps")
	}
	rate := o.positive(name)
	capacity, ok := o.burst(rate)
	if rate == nil {
		return unread
	}
	limit, err := perDuration(rate)
	if err != nil {
		o.add(name, "must be 1 token in 292 years to 1e9 a second (got %s)", short(rate))
	}
	if err != nil || !ok {
		return unread
	}
	limit.Capacity = capacity
	return limit
}

// burst reads the capacity. The rate is nil if it could not be read.
func (o *object) burst(rate *big.Rat) (capacity int, ok bool) {
	if !o.has("burst") {
		o.add("burst", "is missing")
	}
	x := o.number("burst")
	if x == nil {
		return 0, false
	}
	got, before := short(x), len(o.errs)
	if !x.IsInt() {
		o.add("burst", "must be a whole number of tokens (got %s)", got)
	}
	switch {
	case rate != nil && x.Cmp(rate) < 0:
		o.add("burst", "must be >= tokens_per_second (got %s, want >= %s)", got, short(rate))
	case x.Sign() <= 0:
		o.add("burst", "must be > 0 (got %s)", got)
	case x.Cmp(big.NewRat(tb.MaxCapacity, 1)) > 0:
		o.add("burst", "must be at most %d (got %s)", tb.MaxCapacity, got)
	}
	return int(x.Num().Int64()), len(o.errs) == before
}

// perDuration returns a limit with a rate of so many tokens a second, which is exactly the
// decimal that the file has. If a Limit cannot hold that, it is the simplest fraction that
// is the same float64: 0.3333333333333333 is a third.
func perDuration(rate *big.Rat) (tb.Limit, error) {
	ns := new(big.Int).Mul(rate.Denom(), big.NewInt(int64(time.Second)))
	if ns.IsInt64() && rate.Num().Cmp(ns) <= 0 {
		return tb.Limit{Tokens: rate.Num().Int64(), Per: time.Duration(ns.Int64())}, nil
	}
	f, _ := rate.Float64()
	return tb.LimitPerSecond(1, f)
}
