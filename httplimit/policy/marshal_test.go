package policy

import (
	"encoding/json"
	"math"
	"math/big"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// roundTrip returns the document of p, and requires that Parse makes p of it.
func roundTrip(t *testing.T, p *Policy) string {
	t.Helper()
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if value, err := json.Marshal(*p); err != nil || string(value) != string(data) {
		t.Errorf("%s, %v by value; want %s", value, err, data)
	}
	var got Policy
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	if got, want := plain(&got), plain(p); !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v\nwant %+v\nof %s", got, want, data)
	}
	return string(data)
}

// plain returns a copy of p without traces of its document, in which equal rates and empty values
// are written in one way.
func plain(p *Policy) Policy {
	lowest := func(l tb.Limit) tb.Limit {
		x := perSecond(l)
		l.Tokens, l.Per = x.Num().Int64(), time.Duration(x.Denom().Int64())
		return l
	}
	rule := func(r Rule) Rule {
		r.alone, r.Limit, r.Keys = false, lowest(r.Limit), append([]string{}, r.Keys...)
		if len(r.Match) == 0 {
			r.Match = nil
		}
		tiers := map[string]tb.Limit{}
		for name, l := range r.Tiers.Limits {
			tiers[name] = lowest(l)
		}
		r.Tiers.Limits = tiers
		return r
	}
	out := *p
	out.Sets = nil
	for _, s := range p.Sets {
		s.path = ""
		var rules []Rule
		for _, r := range s.Rules {
			rules = append(rules, rule(r))
		}
		s.Rules = rules
		if s.Fallback != nil {
			r := rule(*s.Fallback)
			s.Fallback = &r
		}
		out.Sets = append(out.Sets, s)
	}
	return out
}

func TestMarshalPolicyOfEveryDocument(t *testing.T) {
	documents := append([]string{}, fairvisorExamples...)
	page, err := os.ReadFile("../../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "\n```json\n")[1:]
	for _, block := range blocks {
		document, _, _ := strings.Cut(block, "\n```")
		documents = append(documents, document)
	}
	if len(blocks) < 6 {
		t.Errorf("%d documents in docs/policy.md", len(blocks))
	}
	for _, document := range documents {
		p, err := Parse([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		roundTrip(t, p)
	}
}

// A policy that has no document is an error, and so is a document that is not valid.
func TestMarshalPolicyThatIsNotValid(t *testing.T) {
	limit := tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second}
	data, err := json.Marshal(Rules(Rule{Name: "r", Cost: Cost{Fixed: math.NaN()}}))
	if err == nil {
		t.Errorf("%s has a cost that is not a number", data)
	}
	data, err = json.Marshal(Rules(Rule{Name: "r", OnMissing: 3, Tiers: Tiers{By: "plan"}}))
	if err != nil || !strings.Contains(string(data), `"tiers":{"by":"plan","limits":{}}`) ||
		!strings.Contains(string(data), `"on_missing":3`) {
		t.Errorf("%s, %v", data, err)
	}
	old := Rules(Rule{Name: "r", Limit: limit})
	err = json.Unmarshal([]byte(`{"rules": []}`), old)
	if err == nil || old.Sets[0].Rules[0].Name != "r" {
		t.Errorf("%v, %+v: want an error, and the policy as before", err, old)
	}
}

// A rate that no document has is written as one that is nearly the same.
func TestMarshalPolicyWithAnyFraction(t *testing.T) {
	l := tb.Limit{Capacity: 1, Tokens: 1<<62 + 1, Per: 1<<63 - 1}
	data, err := json.Marshal(Rules(Rule{Name: "r", Limit: l, OnLimit: Delay, MaxDelay: 1}))
	if err != nil {
		t.Fatal(err)
	}
	p, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := perSecond(p.Sets[0].Rules[0].Limit).Float64()
	if want, _ := perSecond(l).Float64(); got != want {
		t.Errorf("%v tokens a second, want %v", got, want)
	}
}

// A document has no defaults, and as few digits of a rate as are needed.
func TestMarshalPolicyAsText(t *testing.T) {
	for want, l := range map[string]tb.Limit{
		"2":                           {Tokens: 2, Per: time.Second},
		"0.123456789":                 {Tokens: 123456789, Per: 1e18},
		"0.3333333333333333":          {Tokens: 1, Per: 3 * time.Second},
		"10000000.333333333333333333": {Tokens: 30000001, Per: 3 * time.Second},
	} {
		l.Capacity = tb.MaxCapacity
		want = `{"rules":[{"name":"r","limit_keys":[],"algorithm_config":{"tokens_per_second":` + want +
			`,"burst":1073741824}}]}`
		if got := roundTrip(t, Rules(Rule{Name: "r", Limit: l})); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// perSecond returns the rate of a limit.
func perSecond(l tb.Limit) *big.Rat {
	x := big.NewRat(l.Tokens, int64(l.Per))
	return x.Mul(x, big.NewRat(int64(time.Second), 1))
}
