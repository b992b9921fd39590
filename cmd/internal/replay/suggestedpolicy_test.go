package replay

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// The suggested limit and the suggested policy refuse as many clients as the suggestion says, and
// both refuse the same requests.
func TestTheSuggestionIsKept(t *testing.T) {
	for _, tt := range []struct{ key, rates string }{
		{"ip", "0.01,0.1,10"},
		{"ip", "0.1,1/ns"},
		{"host,ip", "0.04,3/70s"},
		{"host", "0.15"},
		{"request.headers.X-Api-Key", "0.08"},
	} {
		rnd := rand.New(rand.NewPCG(1, 3))
		pick := func(values ...string) string { return values[rnd.IntN(len(values))] }
		var log strings.Builder
		second := 100
		for range 2000 {
			second += 3 * rnd.IntN(3)
			address := fmt.Sprintf("192.0.2.%d", min(rnd.IntN(9), rnd.IntN(9)))
			log.WriteString(jsonLine(second-rnd.IntN(10), address, "GET", pick("a", "A:80", "b", "c"), "/",
				pick("k", "l", "m", "")))
		}
		in := input("a.log", log.String())
		o := suggestOptions(t, "34%", tt.rates)
		o.Keys = strings.Split(tt.key, ",")
		rep := replay(t, o, in)
		l := rep.Limit
		if l == nil || l.KeysRefused == 0 {
			t.Fatalf("%v: %+v, %s", tt, l, rep.NoAnswer)
		}
		policy, err := policyOf(rep.Suggestion.plan(l), &o)
		if err != nil {
			t.Fatal(err)
		}
		o.Suggest, o.Rate, o.Burst = nil, l.Rate, int(l.Burst)
		limit := replay(t, o, in).Limit
		rule := replayPolicy(t, policy, in).Policy.Rules[0]
		if limit.KeysRefused != l.KeysRefused || rule.KeysRefused != l.KeysRefused ||
			rule.Refused != limit.Refused || rule.Granted != limit.Granted {
			t.Errorf("%v: %d clients; the limit: %+v; the policy: %+v", tt, l.KeysRefused, limit, rule)
		}
	}
}

// A part of a key has the key of a policy that finds the same values.
func TestKeysOfAPolicy(t *testing.T) {
	for _, tt := range []struct {
		part   string
		prefix int
		want   string
	}{
		{"ip", 64, "ip:address"}, {"ip", 48, "ip:address/48"}, {"host", 64, "header:Host"},
		{"request.headers.X-Api-Key", 64, "header:X-Api-Key"},
		{"http_x_api_key", 64, "header:X-Api-Key"}, {"user", 64, ""},
	} {
		if got, ok := policyKey(tt.part, tt.prefix); got != tt.want || ok != (got != "") {
			t.Errorf("%s by /%d: %q, want %q", tt.part, tt.prefix, got, tt.want)
		}
	}
}

func TestAPolicyCannotHaveAllLimits(t *testing.T) {
	for _, tt := range []struct{ key, want string }{
		{"path", "no key for path"},
		{"ip,user", "no key for user"},
		{"host,http_host", "must be unique"},
	} {
		o := suggestOptions(t, "0%", "5")
		o.Keys = strings.Split(tt.key, ",")
		rep := replay(t, o, input("a.log", aDay(strings.Repeat(line("a", 1, 1), minRequests))))
		const why = "There is no policy for tb-proxy: "
		if got := between(rendered(t, rep), why, "\n"); !strings.Contains(got, tt.want) {
			t.Errorf("%v: %q", tt, got)
		}
	}
}

func TestSuggestedFlags(t *testing.T) {
	o := suggestOptions(t, "1%", "1")
	if replay, proxy := o.flags(); replay != "" || proxy != "" {
		t.Errorf("%q and %q by default", replay, proxy)
	}
	o.Keys, o.IPv6Prefix = []string{"ip", "it's"}, 48
	o.Trusted = networks(t, "10.0.0.0/8", "::1/128")
	o.Format = `$remote_addr [$time_local] "$request"`
	o.Field = map[string]string{"uri": "my;uri", "ip": "client.ip"}
	replay, proxy := o.flags()
	const trusted = ` --trusted-proxies 10.0.0.0/8,::1/128`
	const want = trusted + ` --key 'ip,it'\''s' --ipv6-prefix 48` +
		` --field ip=client.ip --field 'uri=my;uri' --format '$remote_addr [$time_local] "$request"'`
	if replay != want || proxy != trusted {
		t.Errorf("got %s\nand %s\nwant %s\nand %s", replay, proxy, want, trusted)
	}
	byPath := suggestOptions(t, "1%", "")
	byPath.ByPath = true
	for want, o := range map[string]Options{
		" --by-path":               byPath,
		"":                         suggestOptions(t, "1%", ""),
		" --suggest 0.5%":          suggestOptions(t, "0.5%", ""),
		" --rate 5/s --suggest 1%": suggestOptions(t, "1%", "5"),
	} {
		if got := o.ask(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
