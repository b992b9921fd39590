package httplimit

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/seed-181794aa/ratelimit/tb"
)

// MarshalJSON returns a document in the format of docs/policy.md, of which ParsePolicy makes the
// same policy. The error joins everything that is wrong with the policy, and what a document cannot
// have:
//
//   - a set without rules
//   - a burst below the rate of a rule that neither delays nor adapts
//   - a rate that is neither a decimal number nor the simplest fraction of one
//   - a text that is not UTF-8
func (p *Policy) MarshalJSON() ([]byte, error) {
	w := &writer{p.check()}
	data, err := json.Marshal(w.document(p))
	if err = errors.Join(w.err(), err); err == nil {
		_, err = ParsePolicy(data)
	}
	if err != nil {
		return nil, fmt.Errorf("httplimit: a policy that JSON cannot have:\n%w", err)
	}
	return data, nil
}

// UnmarshalJSON is ParsePolicy.
func (p *Policy) UnmarshalJSON(data []byte) error {
	parsed, err := ParsePolicy(data)
	if err == nil {
		*p = *parsed
	}
	return err
}

type (
	documentJSON struct {
		JWT        string        `json:"jwt,omitempty"`
		MaxWaiting int           `json:"max_waiting,omitempty"`
		Sets       []bundledJSON `json:"policies,omitempty"`
		*setJSON                 // instead of Sets
	}
	bundledJSON struct {
		ID   string   `json:"id"`
		Spec *setJSON `json:"spec"`
	}
	setJSON struct {
		Selector   *selectorJSON `json:"selector,omitempty"`
		Evaluation string        `json:"evaluation,omitempty"`
		Mode       string        `json:"mode,omitempty"`
		Rules      []*ruleJSON   `json:"rules"`
		Fallback   *ruleJSON     `json:"fallback_limit,omitempty"`
	}
	selectorJSON struct {
		Hosts      []string `json:"hosts,omitempty"`
		Methods    []string `json:"methods,omitempty"`
		PathExact  string   `json:"pathExact,omitempty"`
		PathPrefix string   `json:"pathPrefix,omitempty"`
	}
	ruleJSON struct {
		Name      string            `json:"name"`
		Keys      []string          `json:"limit_keys"`
		Match     map[string]string `json:"match,omitempty"`
		OnMissing string            `json:"on_missing,omitempty"`
		Mode      string            `json:"mode,omitempty"`
		OnLimit   string            `json:"on_limit,omitempty"`
		MaxDelay  string            `json:"max_delay,omitempty"`
		Config    configJSON        `json:"algorithm_config"`
	}
	configJSON struct {
		limitJSON
		CostSource   string        `json:"cost_source,omitempty"`
		FixedCost    float64       `json:"fixed_cost,omitempty"`
		DefaultCost  float64       `json:"default_cost,omitempty"`
		MinCost      float64       `json:"min_cost,omitempty"`
		MaxCost      float64       `json:"max_cost,omitempty"`
		HideCost     bool          `json:"hide_cost_header,omitempty"`
		Tiers        *tiersJSON    `json:"tiers,omitempty"`
		Adaptive     *adaptiveJSON `json:"adaptive,omitempty"`
		ParentFactor int           `json:"parent_factor,omitempty"`
	}
	limitJSON struct {
		Rate  json.Number `json:"tokens_per_second"`
		Burst int         `json:"burst"`
	}
	tiersJSON struct {
		By     string               `json:"by"`
		Limits map[string]limitJSON `json:"limits"`
	}
	adaptiveJSON struct {
		Min       float64 `json:"min"`
		Max       float64 `json:"max"`
		TargetP99 string  `json:"target_p99"`
	}
)

// writer makes a document of a policy. Its problems are what is wrong with the policy.
type writer struct{ problems }

func (w *writer) document(p *Policy) any {
	d := &documentJSON{MaxWaiting: p.MaxWaiting}
	if len(p.Sets) == 0 {
		w.add("sets", "must not be empty, because nothing would be limited")
	}
	if p.UnverifiedJWT {
		d.JWT = verifications[1]
	}
	if len(p.Sets) == 1 && p.Sets[0].Name == "" {
		s := &p.Sets[0]
		if len(s.Rules) == 1 && s.Rules[0].alone {
			return w.rule(&s.Rules[0], "")
		}
		d.setJSON = w.set(s, "")
		return d
	}
	for i := range p.Sets {
		d.Sets = append(d.Sets, bundledJSON{p.Sets[i].Name, w.set(&p.Sets[i], p.setPath(i))})
	}
	return d
}

func (w *writer) set(s *RuleSet, path string) *setJSON {
	out := &setJSON{
		Evaluation: choice(evaluations, s.Evaluation), Mode: mode(s.Shadow), Rules: []*ruleJSON{},
	}
	if sel := s.Selector; len(sel.Hosts)+len(sel.Methods) > 0 || sel.PathExact+sel.PathPrefix != "" {
		out.Selector = &selectorJSON{sel.Hosts, sel.Methods, sel.PathExact, sel.PathPrefix}
		at := field(path, "selector")
		w.text(field(at, "pathExact"), sel.PathExact)
		w.text(field(at, "pathPrefix"), sel.PathPrefix)
		for i, m := range sel.Methods {
			w.text(index(field(at, "methods"), i), m)
		}
	}
	for r, path := range s.all(path) {
		if r == s.Fallback {
			out.Fallback = w.rule(r, path)
		} else {
			out.Rules = append(out.Rules, w.rule(r, path))
		}
	}
	return out
}

func (w *writer) rule(r *Rule, path string) *ruleJSON {
	config := field(path, "algorithm_config")
	c := configJSON{
		limitJSON: w.limit(r.Limit, field(path, "limit")), ParentFactor: r.ParentFactor,
		CostSource: r.Cost.Source, FixedCost: r.Cost.Fixed, DefaultCost: r.Cost.Default,
		MinCost: r.Cost.Min, MaxCost: r.Cost.Max, HideCost: r.Cost.HideHeader,
	}
	if len(r.Tiers.Limits) > 0 {
		c.Tiers = &tiersJSON{r.Tiers.By, map[string]limitJSON{}}
		for name, l := range r.Tiers.Limits {
			at := field(field(field(config, "tiers"), "limits"), name)
			w.text(at, name)
			c.Tiers.Limits[name] = w.limit(l, at)
		}
	}
	if a := r.Adaptive; a != (Adaptive{}) {
		c.Adaptive = &adaptiveJSON{a.Min, a.Max, a.TargetP99.String()}
	}
	out := &ruleJSON{
		Name: r.Name, Keys: append([]string{}, r.Keys...), Match: r.Match, Mode: mode(r.Shadow),
		OnMissing: choice(missings, r.OnMissing), OnLimit: choice(actions, r.OnLimit), Config: c,
	}
	if r.MaxDelay != 0 {
		out.MaxDelay = r.MaxDelay.String()
	}
	for k, v := range r.sortedMatch() {
		w.text(field(field(path, "match"), k), v)
	}
	return out
}

// limit returns a limit with a rate of which perDuration makes the same rate: its exact decimal,
// its floating-point number, or, if that is a short decimal by chance, one that is too long to be
// exact.
func (w *writer) limit(l tb.Limit, path string) limitJSON {
	if l.Validate() != nil { // which is a problem already
		return limitJSON{Rate: "0"}
	}
	rate := perSecond(l)
	decimals, _ := rate.FloatPrec()
	f, _ := rate.Float64()
	for _, text := range []string{
		rate.FloatString(min(decimals, 40)), strconv.FormatFloat(f, 'g', -1, 64), rate.FloatString(20),
	} {
		x, ok := decimal(text)
		if !ok {
			continue
		}
		if read, err := perDuration(x); err == nil && perSecond(read).Cmp(rate) == 0 {
			return limitJSON{json.Number(text), l.Capacity}
		}
	}
	w.add(path, "has a rate that is not the simplest fraction of a decimal number (got %d in %v)",
		l.Tokens, l.Per)
	return limitJSON{Rate: "0"}
}

func perSecond(l tb.Limit) *big.Rat {
	x := big.NewRat(l.Tokens, int64(l.Per))
	return x.Mul(x, big.NewRat(int64(time.Second), 1))
}

// text checks a text that may have any bytes.
func (w *writer) text(path, s string) {
	if !utf8.ValidString(s) {
		w.add(path, "must be UTF-8 (got %q)", s)
	}
}

// choice returns the name of a value, or nothing for the first one, which is the default.
func choice[V ~int](names []string, v V) string {
	if v <= 0 || int(v) >= len(names) { // which is a problem already
		return ""
	}
	return names[v]
}

func mode(shadow bool) string {
	if shadow {
		return modes[1]
	}
	return ""
}
