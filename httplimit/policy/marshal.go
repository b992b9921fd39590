package policy

import (
	"encoding/json"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// MarshalJSON returns a document in the format of docs/policy.md, of which Parse makes the
// same policy. It writes what the policy says, valid or not: Parse checks the document. A
// rate that is neither a decimal number nor the simplest fraction of one is written as a number
// that is nearly the same, and a text that is not UTF-8 as encoding/json writes it.
func (p Policy) MarshalJSON() ([]byte, error) {
	var d members
	if p.UnverifiedJWT {
		d.add("jwt", verifications[1])
	}
	d.add("max_waiting", p.MaxWaiting)
	d.add("except", exceptionMembers(p.Except))
	if len(p.Sets) == 1 && p.Sets[0].Name == "" {
		return json.Marshal(append(d, p.Sets[0].members()...))
	}
	sets := []members{}
	for i := range p.Sets {
		sets = append(sets, members{{"id", p.Sets[i].Name}, {"spec", p.Sets[i].members()}})
	}
	return json.Marshal(append(d, member{"policies", sets}))
}

// UnmarshalJSON is Parse.
func (p *Policy) UnmarshalJSON(data []byte) error {
	parsed, err := Parse(data)
	if err == nil {
		*p = *parsed
	}
	return err
}

func (s *RuleSet) members() (m members) {
	m.add("selector", s.Selector.members())
	m.choose("evaluation", evaluations, int(s.Evaluation))
	m.addMode(s.Shadow)
	rules := []members{}
	for i := range s.Rules {
		rules = append(rules, s.Rules[i].members())
	}
	m = append(m, member{"rules", rules})
	if s.Fallback != nil {
		m.add(fallbackName, s.Fallback.members())
	}
	return m
}

func (s *Selector) members() (m members) {
	m.add("hosts", s.Hosts)
	m.add("methods", s.Methods)
	m.add("pathExact", s.PathExact)
	m.add("pathPrefix", s.PathPrefix)
	return m
}

func exceptionMembers(exceptions []Exception) (all []members) {
	for i := range exceptions {
		m := exceptions[i].members()
		m.add(addressKey, exceptions[i].Networks)
		all = append(all, m)
	}
	return all
}

func (r *Rule) members() members {
	c := limitMembers(r.Limit)
	c.add("cost_source", r.Cost.Source)
	c.add("fixed_cost", r.Cost.Fixed)
	c.add("default_cost", r.Cost.Default)
	c.add("min_cost", r.Cost.Min)
	c.add("max_cost", r.Cost.Max)
	c.add("status_costs", r.Cost.Statuses)
	c.add("hide_cost_header", r.Cost.HideHeader)
	if t := &r.Tiers; t.By != "" || len(t.Limits) > 0 {
		limits := map[string]members{}
		for name, l := range t.Limits {
			limits[name] = limitMembers(l)
		}
		c.add("tiers", members{{"by", t.By}, {"limits", limits}})
	}
	if a := &r.Adaptive; *a != (Adaptive{}) {
		target := a.TargetP99.String()
		c.add("adaptive", members{{"min", a.Min}, {"max", a.Max}, {"target_p99", target}})
	}

	m := members{{"name", r.Name}, {"limit_keys", append([]string{}, r.Keys...)}}
	m.add("match", r.Match)
	m.add("except", exceptionMembers(r.Except))
	m.choose("on_missing", missings, int(r.OnMissing))
	m.addMode(r.Shadow)
	m.choose("on_limit", actions, int(r.OnLimit))
	if r.MaxDelay != 0 {
		m.add("max_delay", r.MaxDelay.String())
	}
	if r.Block != 0 {
		m.add("block", r.Block.String())
	}
	if p := &r.Priority; p.By != "" || len(p.Keep) > 0 {
		m.add("priority", members{{"by", p.By}, {"keep", p.Keep}})
	}
	return append(m, member{"algorithm_config", c})
}

func limitMembers(l tb.Limit) members {
	return members{{"tokens_per_second", rateNumber(l)}, {"burst", l.Capacity}}
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

// members are the fields of a JSON object, in their order.
type members []member

type member struct {
	name  string
	value any
}

// add adds a field, unless it has the zero value.
func (m *members) add(name string, value any) {
	if !reflect.ValueOf(value).IsZero() {
		*m = append(*m, member{name, value})
	}
}

// choose adds a field with one of several names, unless it is the first one, the default. A value
// without a name is not valid, and stays a number.
func (m *members) choose(name string, names []string, value int) {
	if value > 0 && value < len(names) {
		m.add(name, names[value])
	} else {
		m.add(name, value)
	}
}

func (m *members) addMode(shadow bool) {
	if shadow {
		m.add("mode", modes[1])
	}
}

// MarshalJSON implements json.Marshaler.
func (m members) MarshalJSON() ([]byte, error) {
	text := []byte{'{'}
	for i, f := range m {
		value, err := json.Marshal(f.value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(strconv.AppendQuote(text, f.name), ':'), value...)
	}
	return append(text, '}'), nil
}
