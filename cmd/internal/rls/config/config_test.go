package config

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// load parses the text of one file.
func load(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Parse([]File{{"f.yaml", text}}, false)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// find returns the path of the rule for a descriptor, given as keys and values, or "".
func find(c *Config, domain string, pairs ...string) string {
	if d := c.Domain(domain); d != nil {
		if r := d.Match(entries(pairs...)); r != nil {
			return string(r.AppendPath(nil, entries(pairs...)))
		}
	}
	return ""
}

func entries(pairs ...string) (all []*Entry) {
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, &Entry{Key: pairs[i], Value: pairs[i+1]})
	}
	return all
}

const tree = `
domain: shop
descriptors:
  - key: plan
    value: free
    descriptors:
      - key: user
        rate_limit: {unit: second, requests_per_unit: 5}
      - key: user
        value: ann
        rate_limit: {unit: second, requests_per_unit: 10}
  - key: ip
    rate_limit: {unit: minute, requests_per_unit: 20}
  - key: ip
    value: 192.0.2.1
    rate_limit: {unit: minute, requests_per_unit: 30}
  - key: ip
    value: 192.0.2.2
  - key: both
    value: x
    rate_limit: {unit: day, requests_per_unit: 15}
    descriptors:
      - key: below
        value: y
        rate_limit: {unit: day, requests_per_unit: 25}
  - key: free
    rate_limit: {unlimited: true}
`

// The most specific descriptor of the same depth matches.
func TestMatch(t *testing.T) {
	c := load(t, tree)
	for want, descriptors := range map[string][][]string{
		"": {
			nil, {"ip", "192.0.2.2"}, {"plan", "free"}, {"plan", "paid"}, {"plan", "paid", "user", "ann"},
			{"ip", "192.0.2.9", "user", "ann"}, {"both", "x", "below", "z"}, {"both", "z"}, {"none", ""},
			{"plan", "free", "user", "ann", "more", ""}, {"ip_192.0.2.1", ""},
		},
		"plan_free.user":     {{"plan", "free", "user", "bob"}, {"plan", "free", "user", ""}},
		"plan_free.user_ann": {{"plan", "free", "user", "ann"}},
		"ip":                 {{"ip", "192.0.2.9"}, {"ip", ""}},
		"ip_192.0.2.1":       {{"ip", "192.0.2.1"}},
		"both_x":             {{"both", "x"}},
		"both_x.below_y":     {{"both", "x", "below", "y"}},
		"free":               {{"free", "any"}},
	} {
		for _, d := range descriptors {
			if got := find(c, "shop", d...); got != want {
				t.Errorf("%q: %q, want %q", d, got, want)
			}
		}
	}
	if got := find(c, "other", "ip", "192.0.2.9"); got != "" {
		t.Errorf("another domain: %q", got)
	}
}

func TestPatterns(t *testing.T) {
	c := load(t, `
domain: d
descriptors:
  - {key: k, value: "foo*bar*baz", rate_limit: {unit: second, requests_per_unit: 1}}
  - {key: k, value: "foo*", rate_limit: {unit: second, requests_per_unit: 2}}
  - {key: k, value: "foo1", rate_limit: {unit: second, requests_per_unit: 3}}
  - {key: k, value: "a*a", rate_limit: {unit: second, requests_per_unit: 4}}
  - {key: any, value: "*", rate_limit: {unit: second, requests_per_unit: 5}}
  - {key: any, rate_limit: {unit: second, requests_per_unit: 6}}
`)
	for value, want := range map[string]string{
		"foo1": "k_foo1", "foo2": "k_foo*", "foo": "k_foo*", "fo": "", "xfoo": "",
		"foobarbaz": "k_foo*bar*baz", "foo1bar2baz": "k_foo*bar*baz", "foo1baz": "k_foo*",
		"foobabaz": "k_foo*", "foobarbarbaz": "k_foo*bar*baz", "aa": "k_a*a", "aba": "k_a*a", "a": "",
	} {
		if got := find(c, "d", "k", value); got != want {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
	for _, value := range []string{"", "x"} {
		if got := find(c, "d", "any", value); got != "any_*" {
			t.Errorf("%q: %q", value, got)
		}
	}
}

// Two descriptors share a bucket if they differ in nothing that the rule leaves open.
func TestKeys(t *testing.T) {
	c := load(t, `
domain: d
descriptors:
  - key: a
    descriptors:
      - {key: b, rate_limit: {unit: second, requests_per_unit: 1}}
  - key: p
    value: "x*"
    share_threshold: true
    descriptors:
      - {key: b, value: "y*", rate_limit: {unit: second, requests_per_unit: 1}}
      - key: c
        value: "z*"
        share_threshold: true
        rate_limit: {unit: second, requests_per_unit: 1}
`)
	key := func(pairs ...string) string {
		all := entries(pairs...)
		r := c.Domain("d").Match(all)
		if r == nil {
			t.Fatalf("%q: no rule", pairs)
		}
		k, _ := r.Key(all, nil)
		return k
	}
	long := strings.Repeat("v", 3*maxPart)
	for _, same := range [][2][]string{
		{{"p", "x1", "b", "y"}, {"p", "x2", "b", "y"}},
		{{"p", "x1", "c", "z1"}, {"p", "x2", "c", "z2"}},
	} {
		if key(same[0]...) != key(same[1]...) {
			t.Errorf("%q: keys differ", same)
		}
	}
	seen := map[string][]string{}
	for _, d := range [][]string{
		{"a", "1", "b", "2"}, {"a", "2", "b", "1"}, {"a", "", "b", "12"}, {"a", "12", "b", ""},
		{"a", "1\x00", "b", "2"}, {"a", "1", "b", "\x002"}, {"a", "1_", "b", "2"}, {"a", "1", "b", "_2"},
		{"a", long, "b", ""}, {"a", long + "v", "b", ""}, {"a", "", "b", long},
		{"a", string(digest(long)), "b", ""},
		{"p", "x", "b", "y" + long}, {"p", "x", "b", "y,"}, {"a", "1,", "b", "2"}, {"a", "1", "b", ",2"},
		{"p", "x", "b", "y"},
	} {
		if d[0] == "p" && d[3][0] != 'y' {
			d[3] = "y" + d[3]
		}
		k := key(d...)
		if other, ok := seen[k]; ok {
			t.Errorf("%.80q and %.80q have one key", d, other)
		}
		if seen[k] = d; len(k) > 2*3*maxPart+1 {
			t.Errorf("a key of %d bytes", len(k))
		}
	}
}

// The paths in metrics are as in envoyproxy/ratelimit.
func TestPaths(t *testing.T) {
	c := load(t, `
domain: d
descriptors:
  - {key: detailed, detailed_metric: true, rate_limit: {unit: minute, requests_per_unit: 1}}
  - key: route
    value_to_metric: true
    descriptors:
      - key: method
        value: "re*"
        value_to_metric: true
        descriptors:
          - {key: id, rate_limit: {unit: minute, requests_per_unit: 1}}
  - key: shared
    value: "api/*"
    share_threshold: true
    value_to_metric: true
    descriptors:
      - {key: method, rate_limit: {unit: minute, requests_per_unit: 1}}
      - {key: end, detailed_metric: true, rate_limit: {unit: minute, requests_per_unit: 1}}
`)
	for want, d := range map[string][]string{
		"detailed_v":                {"detailed", "v"},
		"route_api.method_read.id":  {"route", "api", "method", "read", "id", "7"},
		"shared_api/*.method":       {"shared", "api/1", "method", "GET"},
		"shared_api/*.end_checkout": {"shared", "api/1", "end", "checkout"},
	} {
		if got := find(c, "d", d...); got != want {
			t.Errorf("%q: %q, want %q", d, got, want)
		}
	}
}

func TestLimits(t *testing.T) {
	day := 24 * time.Hour
	for text, want := range map[string]tb.Limit{
		"unit: second, requests_per_unit: 5":          {Capacity: 5, Tokens: 5, Per: time.Second},
		"unit: MINUTE, requests_per_unit: 5":          {Capacity: 5, Tokens: 5, Per: time.Minute},
		"unit: Week, requests_per_unit: 5":            {Capacity: 5, Tokens: 5, Per: 7 * day},
		"unit: month, requests_per_unit: 5":           {Capacity: 5, Tokens: 5, Per: 30 * day},
		"unit: year, requests_per_unit: 5, burst: 2":  {Capacity: 2, Tokens: 5, Per: 365 * day},
		"unit: hour, requests_per_unit: 1, burst: 2":  {Capacity: 2, Tokens: 1, Per: time.Hour},
		"unit: second, requests_per_unit: 4294967295": {Capacity: 1 << 30, Tokens: 1e9, Per: time.Second},
		"unit: minute, requests_per_unit: 0":          {},
		"unit: minute":                                {},
		"unlimited: true":                             {},
		"unlimited: true, requests_per_unit: 1":       {},
		"unit: day, requests_per_unit: 9, cost: 0.5":  {Capacity: 9, Tokens: 9, Per: day},
		"unit: day, requests_per_unit: 9, name: x":    {Capacity: 9, Tokens: 9, Per: day},
		"unit: day, requests_per_unit: 0x10":          {Capacity: 16, Tokens: 16, Per: day},
		"unit: minute, requests_per_unit: 2000000000": {Capacity: 1 << 30, Tokens: 2e9, Per: time.Minute},
		"replaces: [{name: y}], unit: second":         {},
	} {
		r := load(t, "domain: d\ndescriptors: [{key: k, rate_limit: {"+text+"}}]").Rules[0]
		if r.Limit != want {
			t.Errorf("%s: %+v, want %+v", text, r.Limit, want)
		}
	}
}

// A rule has the buckets of the same descriptors, whatever their limits are.
func TestIdentity(t *testing.T) {
	id := func(text string) string {
		return load(t, "domain: d\ndescriptors: [{"+text+"}]").Rules[0].ID
	}
	limit := ", rate_limit: {unit: day, requests_per_unit: 1}"
	base := id(`key: k, value: "v*"` + limit)
	if other := id(`key: k, value: "v*", shadow_mode: true, rate_limit: {unit: hour}`); other != base {
		t.Error("another limit has other buckets")
	}
	for _, text := range []string{
		`key: k` + limit, `key: k, value: v` + limit, `key: k, value: "v**"` + limit,
		`key: k, value: "v*", share_threshold: true` + limit,
	} {
		if id(text) == base {
			t.Errorf("%s has the same buckets", text)
		}
	}
}
