package replay

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
	"github.com/seed-181794aa/ratelimit/tb"
)

// policyOptions returns the options of a replay of a policy.
func policyOptions(t testing.TB, policy string) (Options, error) {
	t.Helper()
	o := Options{
		Keys: []string{"ip"}, IPv6Prefix: 64, MaxKeys: tb.DefaultMaxKeys,
		PolicyFile: testkit.File(t, "policy.json", policy),
	}
	if err := o.complete(); err != nil {
		t.Fatal(err)
	}
	return o, o.readPolicy(t.Context(), io.Discard)
}

func replayPolicy(t testing.TB, policy string, inputs ...Input) *Report {
	t.Helper()
	o, err := policyOptions(t, policy)
	if err != nil {
		t.Fatal(err)
	}
	return replay(t, o, inputs...)
}

// outcomes returns the counts of a policy and of its rules as text.
func (o *PolicyOutcome) counts() string {
	text := fmt.Sprintf("%d/%d", o.Granted, o.Refused)
	for _, r := range o.Rules {
		text += fmt.Sprintf(" %s %d/%d", r.Rule, r.Granted, r.Refused)
	}
	return text
}

func TestAPolicyOfOneRuleDecidesAsItsLimit(t *testing.T) {
	const policy = `{"name": "x", "limit_keys": ["ip:address"],
		"algorithm_config": {"tokens_per_second": 4, "burst": 14, "fixed_cost": 2}}`
	got := replayPolicy(t, policy, sampled(20_000)).Policy
	o := options(t, "2", 7)
	rep := replay(t, o, sampled(20_000))
	want := rep.Limit
	if want.Refused == 0 || got.Granted != want.Granted || got.Refused != want.Refused ||
		got.Rules[0].Granted != want.Granted || got.Rules[0].Refused != want.Refused {
		t.Errorf("%s, want %+v", got.counts(), want)
	}
	refused := make(map[string]uint64)
	for _, k := range rep.Top {
		refused["ip:address="+k.Key[0]] = k.Refused
	}
	for _, k := range got.Rules[0].Top {
		if k.Refused != refused[k.Key] {
			t.Errorf("%+v, want %d refused", k, refused[k.Key])
		}
	}
}

// requestLine returns a line with a request line.
func requestLine(request string) string {
	return `1.1.1.1 - - [09/Sep/2001:01:46:40 +0000] "` + request + `" 200 17 "-" "-"` + "\n"
}

// jsonLine is a request in the log of Caddy.
func jsonLine(second int, ip, method, host, uri, key string) string {
	return fmt.Sprintf(`{"ts":%d,"request":{"remote_ip":%q,"method":%q,"host":%q,"uri":%q,`+
		`"headers":{"X-Api-Key":[%q],"X-Cost":["2"]}}}`+"\n", 1e9+second, ip, method, host, uri, key)
}

func TestAPolicyByHand(t *testing.T) {
	const config = `"algorithm_config": {"tokens_per_second": 0.001, "burst": 2}`
	get := func(ip, key string) string { return jsonLine(0, ip, "GET", "h", "/v1/x?q=1", key) }
	at := func(seconds ...int) (log string) {
		for _, second := range seconds {
			log += jsonLine(second, "1.1.1.1", "GET", "h", "/", "")
		}
		return log
	}
	for _, tt := range []struct{ name, policy, log, want string }{
		{
			"cost and tiers", `{"name": "a", "limit_keys": ["ip:address"], "algorithm_config":
				{"tokens_per_second": 0.001, "burst": 2, "cost_source": "header:x-cost", "tiers":
				{"by": "header:x-api-key", "limits": {"gold": {"tokens_per_second": 0.001, "burst": 4}}}}}`,
			get("1.1.1.1", "x") + get("1.1.1.1", "x") + get("1.1.1.2", "gold") + get("1.1.1.2", "gold"),
			"3/1 a 3/1",
		},
		{ // programs differ in which value they take
			"repeated field", `{"name": "a", "limit_keys": ["header:x-api-key"], ` + config + `}`,
			strings.Repeat(strings.Replace(get("", "k1"), `"k1"`, `"k1","k2"`, 1), 3) + get("", "k1") +
				strings.Repeat(strings.Replace(get("", "k1"), "X-Cost", "X-Api-Key.*", 1), 2),
			"2/4 a 2/4",
		},
		{
			"query and match", `{"name": "q", "limit_keys": ["query:q"], "match": {"header:host": "h"}, ` +
				config + `}`,
			strings.Repeat(get("1.1.1.1", ""), 3) + jsonLine(0, "1.1.1.1", "GET", "h", "/?q=2", "") +
				strings.Repeat(jsonLine(0, "1.1.1.1", "GET", "other", "/?q=1", ""), 5), "8/1 q 3/1",
		},
		{"query of ASP.NET Core", `{"name": "a", "limit_keys": ["query:q"], ` + config + `}`,
			"#Fields: date time cs-uri-stem cs-uri-query\n" +
				strings.Repeat("2001-09-09 01:46:40 /a ?q=1&r=2\n", 3), "2/1 a 2/1"},
		{"query of AWS WAF", `{"name": "a", "limit_keys": ["query:q"], ` + config + `}`,
			strings.Repeat(`{"timestamp":1e9,"httpRequest":{"uri":"/","args":"q=1"}}`+"\n", 3), "2/1 a 2/1"},
		{
			"selector", `{"selector": {"methods": ["POST"], "hosts": ["h"], "pathPrefix": "/v1/"},
				"rules": [{"name": "a", "limit_keys": [], ` + config + `}]}`,
			strings.Repeat(jsonLine(0, "1.1.1.1", "POST", "h", "//v1/%79", ""), 3) +
				strings.Repeat(get("1.1.1.1", ""), 3) +
				strings.Repeat(jsonLine(0, "1.1.1.1", "POST", "h", "/v2/", ""), 3), "8/1 a 2/1",
		},
		{ // at the end of its hold, a bucket is empty
			"block", `{"name": "a", "limit_keys": ["ip:address"], "block": "1h", ` +
				`"algorithm_config": {"tokens_per_second": 1, "burst": 2}}`,
			at(0, 0, 0, 1800, 3599, 3600, 7199, 7202), "3/5 a 3/5",
		},
		{ // with costs by status, only what failed counts, and it blocks
			"status", `{"name": "a", "limit_keys": ["ip:address"], "block": "1h", "algorithm_config":
				{"tokens_per_second": 1, "burst": 2, "cost_source": "response:status",
				"status_costs": {"4xx": 1, "2xx": 0}}}`,
			strings.Repeat(requestLine("GET / HTTP/1.1"), 9) + strings.Repeat(strings.Replace(
				requestLine("GET / HTTP/1.1"), " 200 ", " 401 ", 1), 3) +
				strings.Replace(requestLine("GET / HTTP/1.1"), "01:46", "02:46", 1), "11/2 a 11/2",
		},
		{"estimate of clients that left", `{"name": "a", "limit_keys": [], "algorithm_config": {
			"rps": 1, "burst": 2, "cost_source": "response:status", "status_costs": {"4xx": 0}}}`,
			strings.Repeat(strings.Replace(requestLine("GET / HTTP/1.1"), " 200 ", " 499 ", 1), 3),
			"2/1 a 2/1"},
		{
			"exceptions", `{"except": [{"pathExact": "/health"}, {"hosts": ["h"], "methods": ["PUT"]}],
				"rules": [{"name": "a", "limit_keys": [], "except": [{"ip:address": ["1.1.1.2"]}], ` + config +
				`}]}`,
			strings.Repeat(get("1.1.1.1", "")+get("1.1.1.2", "")+
				jsonLine(0, "1.1.1.1", "GET", "h", "/health?q", "")+
				jsonLine(0, "1.1.1.1", "PUT", "h", "/x", ""), 3), "11/1 a 2/1",
		},
		{
			"request lines", `{"selector": {"methods": ["POST"]}, "rules": [
				{"name": "a", "limit_keys": ["query:q"], ` + config + `}]}`,
			strings.Repeat(requestLine("\x1b[31m\x1b[1mPOST /a?q=1&r=2 HTTP/1.1\x1b[0m"), 3) +
				strings.Repeat(requestLine("GET /a?q=1 HTTP/1.1"), 3) +
				requestLine("POST /a?q=2#x HTTP/1.1") + requestLine("POST / HTTP/1.1") +
				requestLine("GET http://h HTTP/1.1"), "7/1 a 2/1", // the last one is for /
		},
		{
			"time", `{"name": "a", "limit_keys": [], "algorithm_config":
				{"tokens_per_second": 1, "burst": 1}}`,
			jsonLine(0, "", "GET", "h", "/", "") + jsonLine(0, "", "GET", "h", "/", "") +
				jsonLine(1, "", "GET", "h", "/", "") + jsonLine(0, "", "GET", "h", "/", ""), "2/2 a 2/2",
		},
		{ // no rule looks at them, so they do not fill the queue
			"long queries", `{"name": "a", "limit_keys": [], ` + config + `}`,
			strings.Repeat(strings.Replace(requestLine("GET /?"+strings.Repeat("q", 90_000)+" HTTP/1.1"),
				"46:40", "46:41", 1), 100) + requestLine("GET / HTTP/1.1"), "2/99 a 2/99",
		},
	} {
		if got := replayPolicy(t, tt.policy, input("a", tt.log)).Policy.counts(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestPoliciesThatCannotBeReplayed(t *testing.T) {
	for _, tt := range []struct{ policy, want string }{
		{`{"name": "x", "limit_keys": [], "algorithm_config": {"tokens_per_second": 1, "burst": 1,
			"cost_source": "response:bytes"}}`, `rule "x" cannot be replayed: its cost is known after`},
		{`{"name": "x", "limit_keys": [], "on_limit": "delay", "max_delay": "1s",
			"algorithm_config": {"tokens_per_second": 1, "burst": 1}}`, "it delays requests"},
		{`{"name": "x", "limit_keys": [], "algorithm_config": {"tokens_per_second": 5, "burst": 9,
			"adaptive": {"min": 1, "max": 9, "target_p99": "100ms"}}}`, "its rate follows"},
		{`{"name": "x"}`, "is not accepted"},
	} {
		if _, err := policyOptions(t, tt.policy); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %s", tt.policy, err, tt.want)
		}
	}
	if _, err := policyOptions(t, `{"name": "x", "mode": "shadow", "limit_keys": [],
		"on_limit": "delay", "max_delay": "1s",
		"algorithm_config": {"tokens_per_second": 1, "burst": 1}}`); err != nil {
		t.Errorf("a shadow rule that delays: %v", err)
	}
}

// A rule that looks at what no request has would grant everything, and look as if it was enough.
func TestRulesThatNoRequestHasTheKeysOf(t *testing.T) {
	const config = `"algorithm_config": {"tokens_per_second": 1, "burst": 9}`
	for _, tt := range []struct{ policy, want string }{
		{`{"name": "x", "limit_keys": ["header:x-api-key"], ` + config + `}`,
			"no request has header:X-Api-Key, which rule x of --policy needs"},
		{`{"name": "x", "limit_keys": [], "match": {"query:q": "1"}, ` + config + `}`, "query"},
		{`{"jwt": "unverified", "rules": [
			{"name": "x", "limit_keys": ["jwt:sub"], ` + config + `},
			{"name": "y", "limit_keys": ["jwt:plan"], ` + config + `}]}`,
			"no request has header:Authorization, which rule x of --policy needs"},
		{`{"selector": {"methods": ["POST"]}, "rules": [
			{"name": "x", "limit_keys": [], ` + config + `}]}`, "method"},
		{`{"selector": {"pathPrefix": "/"}, "rules": [
			{"name": "x", "limit_keys": [], ` + config + `}]}`, "path"},
		{`{"except": [{"hosts": ["h"]}], "rules": [{"name": "x", "limit_keys": [], ` + config + `}]}`,
			"header:Host"},
		{`{"name": "x", "limit_keys": [], "except": [{"ip:address": ["10.0.0.1"]}], ` + config + `}`,
			"ip:address"},
		{`{"name": "x", "limit_keys": ["ip:address/64,/56"], ` + config + `}`, "ip:address"},
		{`{"name": "x", "limit_keys": ["header:proxy-authorization"], ` + config + `}`, "Proxy-"},
	} {
		log := `{"ts":1000000000,"status":200,"ip":"host","request":{"headers":{` + // as Caddy writes it
			`"Proxy-Authorization":["Basic YQ=="],"Authorization":["REDACTED"]}}}` + "\n"
		rep := replayPolicy(t, tt.policy, input("a", log))
		if err := rep.checkNames(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %s", tt.policy, err, tt.want)
		}
	}
}

// tb-proxy would know their addresses.
func TestClientsWithNamesInAPolicy(t *testing.T) {
	rep := replayPolicy(t, `{"name": "x", "limit_keys": ["ip:address"],
		"algorithm_config": {"tokens_per_second": 1, "burst": 1}}`,
		input("a", line("192.0.2.7", 1, 1)+line("a.example", 1, 1)+line("b.example", 1, 1)))
	if got := fmt.Sprint(rep.Doubts); !strings.HasPrefix(got, "[2 of 3 requests (66.7 %) have no") {
		t.Error(got)
	}
}

func TestRequestsThatAProxyAnswersItself(t *testing.T) {
	log := requestLine("TRACE / HTTP/1.1") + requestLine("CONNECT h:443 HTTP/1.1") +
		requestLine("GET /a?b#c HTTP/1.1") + requestLine("GET /a?b c HTTP/1.1") +
		requestLine("GET /a b HTTP/1.1") + requestLine("WebSocket /a") // of uvicorn
	for _, path := range []string{"/a", "/v1/..%2fx", "x", "*", "/%zz", "/a/../b"} {
		log += strings.Replace(line("1.1.1.1", 1, 1), "/p", path, 1)
	}
	const gin = `[GIN] 2001/09/09 - 01:46:40 | 200 | 1ms | 1.1.1.1 | GET "/a b"`
	rep := replayPolicy(t, `{"selector": {"methods": ["GET"]}, "rules": [{"name": "a",
		"limit_keys": [], "algorithm_config": {"tokens_per_second": 1, "burst": 1}}]}`,
		input("a", log), input("b", gin))
	if got := rep.timeline.bins[0]; got != (bin{granted: 6, refused: 1}) {
		t.Errorf("the first second has %+v", got)
	}
	got := rep.Policy
	if got.Unclear != 9 || got.counts() != "2/2 a 2/2" {
		t.Errorf("%d unclear, %s", got.Unclear, got.counts())
	}
}
