package rls

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

func fieldsOf(r *ratelimit.RateLimitResponse) string {
	var all []string
	for _, h := range r.ResponseHeadersToAdd {
		all = append(all, h.Key+": "+h.Value)
	}
	return strings.Join(all, "\n")
}

// The fields are as in tb-proxy.
func TestFields(t *testing.T) {
	s, now := newService(t, limit("a", "unit: minute, requests_per_unit: 2, name: 'a\"'")+
		limit("b", "unit: second, requests_per_unit: 10"),
		func(c *Config) { c.Fields, c.Policy, c.X = FieldsAll, true, true })
	now.Advance(time.Second / 2)
	check := func(what, want string) {
		t.Helper()
		if got := fieldsOf(send(t, s, request(0, "a=", "b="))); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", what, got, want)
		}
	}
	const policy = "\nRateLimit-Policy: \"a\\\"\";q=2;w=60, \"b\";q=10;w=1"
	check("granted", `RateLimit: "a\"";r=1;t=30, "b";r=9;t=1`+policy+`
RateLimit-Limit: 2
RateLimit-Remaining: 1
RateLimit-Reset: 30
X-RateLimit-Limit: 2
X-RateLimit-Remaining: 1
X-RateLimit-Reset: 1767225631`)
	send(t, s, request(0, "a=", "b="))
	now.Advance(100 * time.Millisecond)
	check("refused", `Retry-After: 30
RateLimit: "a\"";r=0;t=30`+policy+`
RateLimit-Limit: 2
RateLimit-Remaining: 0
RateLimit-Reset: 30
X-RateLimit-Limit: 2
X-RateLimit-Remaining: 0
X-RateLimit-Reset: 1767225631`)
}

// The three fields of older drafts have the names of the configuration.
func TestFieldNames(t *testing.T) {
	s, _ := newService(t, limit("a", perMinute+"2"), func(c *Config) {
		c.Fields, c.Names = FieldsAll, [3]string{"L", "Left", "R"}
	})
	const want = "RateLimit: \"a\";r=1;t=30\nL: 2\nLeft: 1\nR: 30"
	if got := fieldsOf(send(t, s, request(0, "a="))); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// The fields count hits, also if a hit costs several tokens.
func TestFieldsOfHits(t *testing.T) {
	s, now := newService(t, limit("a", perMinute+"10, cost: 4"),
		func(c *Config) { c.Fields, c.Policy = FieldsAll, true })
	send(t, s, request(2, "a="))
	now.Advance(12 * time.Second) // so that there are 4 tokens
	want := `RateLimit: "a";r=0;t=24
RateLimit-Policy: "a";q=2;w=60
RateLimit-Limit: 2
RateLimit-Remaining: 0
RateLimit-Reset: 24`
	if got := fieldsOf(send(t, s, request(1, "a="))); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	now.Advance(24 * time.Second)
	expect(t, "after the reset", []string{ask(t, s, "a=")}, "OK OK:0")
}

// Seconds that are whole are not rounded up. In floating point, 29 times 60/29 is above 60.
func TestWholeSeconds(t *testing.T) {
	tree := ""
	for n := 1; n <= 200; n++ {
		tree += limit(fmt.Sprint("k", n), perMinute+fmt.Sprintf("%d, cost: %d", n, n)) +
			limit(fmt.Sprint("c", n), perMinute+fmt.Sprintf("%d, burst: %d", n, 3*n))
	}
	s, _ := newService(t, tree, func(c *Config) { c.Fields, c.Policy = FieldsAll, true })
	for n := 1; n <= 200; n++ {
		for _, tt := range []struct {
			hits           uint32
			key, item, all string
		}{
			{1, fmt.Sprint("k", n), "r=0;t=60", "q=1;w=60"},
			{uint32(n), fmt.Sprint("c", n), fmt.Sprintf("r=%d;t=120", 2*n), fmt.Sprintf("q=%d;w=180", 3*n)},
		} {
			want := fmt.Sprintf("RateLimit: %q;%s\nRateLimit-Policy: %q;%s\n",
				tt.key, tt.item, tt.key, tt.all)
			if got := fieldsOf(send(t, s, request(tt.hits, tt.key+"="))); !strings.HasPrefix(got, want) {
				t.Errorf("%s\nwant\n%s", got, want)
			}
		}
	}
}

// Hits that a full bucket can just pay are granted. In floating point, 100 times 0.07 is above 7,
// and 7/0.07 is below 100.
func TestWholeHits(t *testing.T) {
	for n := 1; n <= 20; n++ {
		s, _ := newService(t, limit("a", fmt.Sprintf("%s%d, cost: 0.07", perMinute, 7*n)),
			func(c *Config) { c.Fields, c.Policy = FieldsAll, true })
		r := send(t, s, request(uint32(100*n), "a="))
		want := fmt.Sprintf("RateLimit: \"a\";r=0;t=1\nRateLimit-Policy: \"a\";q=%d;w=60\n", 100*n)
		if got := fieldsOf(r); r.OverallCode != ratelimit.RateLimitResponse_OK ||
			!strings.HasPrefix(got, want) {
			t.Errorf("%v %s\nwant\n%s", r.OverallCode, got, want)
		}
	}
}

// A refused request has to wait for the slowest of the rules that refuse it.
func TestRetryAfter(t *testing.T) {
	s, _ := newService(t, limit("a", "unit: minute, requests_per_unit: 1")+
		limit("b", "unit: hour, requests_per_unit: 1")+limit("c", "unit: day, requests_per_unit: 9"),
		func(c *Config) { c.Fields = FieldsRefused })
	all := []string{"a=", "b=", "c="}
	ask(t, s, all...)
	want := "Retry-After: 3600\nRateLimit: \"a\";r=0;t=3600, \"b\";r=0;t=3600\n"
	if got := fieldsOf(send(t, s, request(0, all...))); !strings.HasPrefix(got, want) {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// A request that only quotas refuse has to wait for the first of them, but not if another quota
// grants it.
func TestRetryAfterOfQuotas(t *testing.T) {
	tree := limit("a", perMinute+"4") + limit("d", "unit: hour, requests_per_unit: 1, debt: true")
	for n := range 3 {
		tree += fmt.Sprintf("- {key: q%d, quota_mode: true, rate_limit: {%s%[1]d}}\n", n, perMinute)
	}
	s, _ := newService(t, tree, func(c *Config) { c.Fields = FieldsRefused })
	ask(t, s, "q1=", "d=")
	wait := func(all ...string) string {
		text, _, _ := strings.Cut(fieldsOf(send(t, s, request(0, all...))), "\n")
		return text
	}
	expect(t, "quotas", []string{
		wait("q0=", "q1="), wait("q1=", "q0=", "a="), wait("q0="), wait("q0=", "q2=", "d="),
	}, "Retry-After: 60", "Retry-After: 60", "Retry-After: 86400", "Retry-After: 3600")
}

// A quota that never has the hits is full again in a day, as in the status, also if another quota
// grants the request.
func TestFieldsOfAQuotaThatNeverGrants(t *testing.T) {
	s, _ := newService(t, "- {key: q, quota_mode: true, rate_limit: {"+perMinute+"0}}\n"+
		"- {key: r, quota_mode: true, rate_limit: {"+perMinute+"9}}\n",
		func(c *Config) { c.Fields, c.X = FieldsAll, true })
	r := send(t, s, request(0, "q=", "r="))
	const want = `RateLimit: "q";r=0;t=86400, "r";r=8;t=54
RateLimit-Limit: 0
RateLimit-Remaining: 0
RateLimit-Reset: 86400
X-RateLimit-Limit: 0
X-RateLimit-Remaining: 0
X-RateLimit-Reset: 1767312000`
	if got := fieldsOf(r); got != want ||
		r.Statuses[0].DurationUntilReset.AsDuration() != 24*time.Hour {
		t.Errorf("%s\n%v\nwant\n%s", got, r.Statuses[0], want)
	}
}

func TestFieldsOfRefusalsOnly(t *testing.T) {
	s, _ := newService(t, limit("a", "unit: minute, requests_per_unit: 1")+
		limit("zero", "unit: second, requests_per_unit: 0, name: é"),
		func(c *Config) { c.Fields = FieldsRefused })
	for want, k := range map[string]string{"": "a=", `"?";r=0;t=86400`: "zero=", "none": "other="} {
		got := fieldsOf(send(t, s, request(0, k)))
		if want == "none" {
			want = ""
		}
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", k, got, want)
		}
	}
}

// In shadow mode, an answer does not make the client wait.
func TestNoFieldsInShadowMode(t *testing.T) {
	for _, f := range []Fields{FieldsRefused, FieldsAll} {
		s, _ := newService(t, limit("zero", "unit: second, requests_per_unit: 0"),
			func(c *Config) { c.Fields, c.Shadow = f, true })
		if got := fieldsOf(send(t, s, request(0, "zero="))); got != "" {
			t.Errorf("%s: %s", f, got)
		}
	}
}

// Dynamic metadata is the request, and the metadata of the rules that grant it.
func TestMetadata(t *testing.T) {
	const tree = `
- {key: a, rate_limit: {unit: day, requests_per_unit: 1}, metadata: {m: {x: 1, w: 2}, n: 1}}
- {key: b, rate_limit: {unit: day, requests_per_unit: 9}, metadata: {m: {x: 3, z: 4}, n: 5}}
`
	s, _ := newService(t, tree, func(c *Config) { c.Metadata = true })
	get := func(hits uint32) map[string]any {
		return send(t, s, request(hits, "a=", "b=1,k=2", "b=v")).DynamicMetadata.AsMap()
	}
	merged := get(0)
	want := map[string]any{"m": map[string]any{"x": 1.0, "w": 2.0, "z": 4.0}, "n": 1.0}
	if !reflect.DeepEqual(merged["metadata"], want) {
		t.Errorf("granted: %v, want %v", merged["metadata"], want)
	}
	second := get(2)
	want = map[string]any{"m": map[string]any{"x": 3.0, "z": 4.0}, "n": 5.0}
	if !reflect.DeepEqual(second["metadata"], want) {
		t.Errorf("refused by a: %v, want %v", second["metadata"], want)
	}
	entries := second["descriptors"].([]any)[1].(map[string]any)["entries"].([]any)
	if second["domain"] != "d" || second["hitsAddend"] != 2.0 || entries[1] != "k=2" {
		t.Error(second)
	}
}
