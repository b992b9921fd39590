package policycmd

import (
	"bytes"
	"context"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
)

const plans = `{"rules": [
	{"name": "paid", "limit_keys": ["header:x-api-key"], "match": {"header:x-plan": "paid"},
	 "algorithm_config": {"tokens_per_second": 100, "burst": 200}},
	{"name": "free", "limit_keys": ["header:x-api-key"],
	 "algorithm_config": {"tokens_per_second": 0.1, "burst": 3}},
	{"name": "clients", "limit_keys": ["ip:address"], "on_missing": "reject",
	 "algorithm_config": {"tokens_per_second": 5, "burst": 10}},
	{"name": "all", "limit_keys": [], "mode": "shadow", "algorithm_config": {
	 "tokens_per_second": 10, "burst": 20, "cost_source": "header:x-cost"}}]}`

const bad = `{"rules": [
	{"name": "a", "limit_keys": ["ip:address"], "algorithm_config": {"rps": 10, "burst": 5}},
	{"name": "a", "limit_keys": ["user"], "typo": 1, "algorithm_config": {"burst": 2.5}}]}`

const unknownKey = `{"name": "a", "limit_keys": ["user"],
	"algorithm_config": {"rps": 1, "burst": 5}}`

const anyRule = `{"name": "a", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 5}}`

func TestCheck(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, content := range map[string]string{
		"plans.json": plans, "bad.json": bad, "key.json": unknownKey, "broken.json": "[]",
	} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	c := Check{Files: []string{"plans.json", "bad.json", "key.json", "broken.json", "none", "-"}}
	err := c.Run(t.Context(), cli.IO{Stdin: strings.NewReader(plans), Stdout: &out})
	const want = `plans.json: warning: rules[3].algorithm_config.cost_source ` +
		`lets clients choose how many tokens a request takes: set both min_cost and max_cost
plans.json: 4 rules, no errors, 1 warning
bad.json: error: rules[0].algorithm_config.burst ` +
		`must be >= tokens_per_second (got 5, want >= 10)
bad.json: error: rules[1].algorithm_config.tokens_per_second ` +
		`is missing, and so is its alias rps
bad.json: error: rules[1].algorithm_config.burst must be a whole number of tokens (got 2.5)
bad.json: error: rules[1].typo is an unknown field
bad.json: error: rules[1].name must be unique (got "a" again)
bad.json: error: rules[1].limit_keys[0] must be ip:address, ` +
		`header:<name>, query:<name>, cookie:<name>, jwt:<claim> ` +
		`or a key that the application adds (got "user")
key.json: error: limit_keys[0] must be ip:address, ` +
		`header:<name>, query:<name>, cookie:<name>, jwt:<claim> ` +
		`or a key that the application adds (got "user")
broken.json: error: must be an object (got an array)
-: warning: rules[3].algorithm_config.cost_source ` +
		`lets clients choose how many tokens a request takes: set both min_cost and max_cost
-: 4 rules, no errors, 1 warning
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	const failed = `bad.json: 6 errors
key.json: 1 error
broken.json: 1 error
open none: no such file or directory`
	if err == nil || err.Error() != failed {
		t.Errorf("got %v, want %s", err, failed)
	}
}

func TestExplain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plans.json")
	if err := os.WriteFile(file, []byte(plans), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		explain Explain
		want    string
	}{
		{
			Explain{Request: "GET /v1?x=1", Header: []string{"X-Api-Key: k1", "X-Cost: 21"}},
			`GET /v1?x=1 from 192.0.2.1

RULE     MODE     KEY                   COST  BURST  RATE   DECISION OF A FULL BUCKET
free     enforce  header:x-api-key=k1   1     3      1/10s  granted, 2 left
clients  enforce  ip:address=192.0.2.1  1     10     5/s    granted, 9 left
all      shadow   all requests          21    20     10/s   refused: costs more than the burst

These rules do not apply: paid
`,
		},
		{
			Explain{Request: "POST http://h/x", Header: []string{
				"X-Api-Key: k1", "X-Plan: paid",
				"X-Forwarded-For: 198.51.100.7",
			}, Trusted: []cli.Network{
				{Prefix: netip.MustParsePrefix("192.0.2.0/24")},
			}},
			`POST /x from 198.51.100.7

RULE     MODE     KEY                      COST  BURST  RATE   DECISION OF A FULL BUCKET
paid     enforce  header:x-api-key=k1      1     200    100/s  granted, 199 left
clients  enforce  ip:address=198.51.100.7  1     10     5/s    granted, 9 left
all      shadow   all requests             1     20     10/s   granted, 19 left

These rules do not apply: free
`,
		},
	} {
		var out bytes.Buffer
		tt.explain.File, tt.explain.From = file, netip.MustParseAddr("192.0.2.1")
		if err := tt.explain.Run(t.Context(), cli.IO{Stdout: &out}); err != nil {
			t.Error(err)
		}
		if got := out.String(); got != tt.want {
			t.Errorf("got\n%s\nwant\n%s", got, tt.want)
		}
	}
}

// Explain also reports rules that do not apply, and rules whose key is missing.
func TestExplainWhatIsMissing(t *testing.T) {
	const sets = `{"except": [{"pathExact": "/health"}], "policies": [
		{"id": "one", "spec": {"selector": {"pathPrefix": "/v1/"}, "rules": [{"name": "r",
		 "limit_keys": ["query:user"], "on_missing": "reject",
		 "algorithm_config": {"rps": 1, "burst": 1}}]}},
		{"id": "two", "spec": {"selector": {"hosts": ["h.test"]}, "rules": [{"name": "r",
		 "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 1}}]}},
		{"id": "three", "spec": {"rules": [{"name": "r", "limit_keys": ["header:x-real-ip"],
		 "algorithm_config": {"rps": 1, "burst": 1}}]}}]}`
	const two = `RULE   MODE     KEY           COST  BURST  RATE  DECISION OF A FULL BUCKET
two/r  enforce  all requests  1     1      1/s   granted, 0 left

These rules do not apply: one/r, three/r
`
	for _, tt := range []struct{ request, header, want string }{
		{"GET /v1/x", "", `RULE   MODE     KEY          COST  BURST  RATE  DECISION OF A FULL BUCKET
one/r  enforce  query:user=  1     1      1/s   refused: lacks query:user (400)

These rules do not apply: two/r, three/r
`},
		{"G@T /v1", "", "tb-proxy refuses the request with 400: it cannot send it on as it is.\n"},
		{"TRACE /v1", "", "tb-proxy refuses the request with 501: it passes on no TRACE.\n"},
		{"GET /v1?a#b", "", "tb-proxy refuses the request with 400: its query has two meanings.\n"},
		{"GET /health", "Host: h.test", `No rule applies: the request passes, without rate limit fields.

These rules do not apply: one/r, two/r, three/r
`},
		{"GET /v1", "X-Real-IP: 192.0.2.9",
			`No rule applies: the request passes, without rate limit fields.

These rules do not apply: one/r, two/r, three/r
`},
		{"GET /", "Host: h.test", two},
		{"GET http://h.test/", "Host: other.test", two}, // net/http reads no Host beside it
	} {
		var out bytes.Buffer
		c := Explain{File: "-", Request: tt.request, From: netip.MustParseAddr("::1")}
		if tt.header != "" {
			c.Header = []string{tt.header}
		}
		if err := c.Run(t.Context(), cli.IO{Stdin: strings.NewReader(sets), Stdout: &out}); err != nil {
			t.Error(err)
		}
		if _, got, _ := strings.Cut(out.String(), "\n\n"); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.request, got, tt.want)
		}
	}
}

func TestExplainRequestsWithTwoReadings(t *testing.T) {
	const policy = `{"name": "r", "limit_keys": ["header:k"],
		"algorithm_config": {"rps": 1, "burst": 2}}`
	for _, tt := range []struct {
		request string
		header  []string
		want    string
	}{
		{"GET /v1/..%2fx", nil, "refuses the request with 400: its path has two meanings."},
		{"GET /v1/../x", []string{"K: 1"}, "granted, 1 left"},
		{"GET /", []string{"K: 1", "K: 2"}, "more than once (400)"},
	} {
		var out bytes.Buffer
		c := Explain{File: "-", Request: tt.request, Header: tt.header, From: netip.MustParseAddr("::1")}
		if err := c.Run(t.Context(), cli.IO{Stdin: strings.NewReader(policy), Stdout: &out}); err != nil {
			t.Error(err)
		}
		if !strings.Contains(out.String(), tt.want) {
			t.Errorf("%s: got\n%s\nwant %s", tt.request, out.String(), tt.want)
		}
	}
}

// A policy that limits nothing is an error or a warning.
func TestCheckFindsPoliciesThatLimitNothing(t *testing.T) {
	const jwt = `{"name": "a", "limit_keys": ["jwt:sub"], "algorithm_config": {"rps": 1, "burst": 5}}`
	rules := func(rule string) string { return `"rules": [` + rule + `]` }
	for policy, want := range map[string]string{
		`{"rules": []}`:    "error: rules must not be empty without fallback_limit",
		`{"policies": []}`: "error: policies must not be empty",
		jwt:                `error: limit_keys[0] needs claims, which only "jwt": "unverified" supplies`,

		`{"jwt": "unverified", ` + rules(jwt) + `}`:          "warning: rules[0].limit_keys[0] is chosen",
		strings.Replace(jwt, `"jwt:sub"`, `"header:k"`, 1):   "warning: limit_keys[0] is chosen",
		`{"mode": "shadow", ` + rules(anyRule) + `}`:         "warning: rules limit nothing",
		`{"policies": [{"spec": {` + rules(anyRule) + `}}]}`: "error: policies[0].id must not be empty",
	} {
		var out bytes.Buffer
		err := (&Check{Files: []string{"-"}}).Run(t.Context(), cli.IO{
			Stdin: strings.NewReader(policy), Stdout: &out,
		})
		if got := out.String(); !strings.Contains(got, "-: "+want) ||
			(err == nil) != strings.HasPrefix(want, "warning") {
			t.Errorf("%.100s: %v\n%s\nwant %s", policy, err, got, want)
		}
	}
}

// A cost that the response reports is an estimate until then.
func TestExplainEstimates(t *testing.T) {
	const policy = `{"name": "usage", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 100,
		"default_cost": 10, "cost_source": "response:bytes"}}`
	var out bytes.Buffer
	c := Explain{File: "-", Request: "GET /"}
	if err := c.Run(t.Context(), cli.IO{Stdin: strings.NewReader(policy), Stdout: &out}); err != nil {
		t.Fatal(err)
	}
	const want = "usage  enforce  all requests  10, then the response's  100    1/s   granted, 90 left"
	if !strings.Contains(out.String(), want) {
		t.Errorf("%s\nwant %s", out.String(), want)
	}
}

func TestExplainErrors(t *testing.T) {
	for want, c := range map[string]Explain{
		"want a method and a path":   {Request: "/x"},
		"want a method and a path ":  {Request: "GET x"},
		"want a method and a path  ": {Request: "GET /x HTTP/1.1"},
		"want a name and a value":    {Request: "GET /", Header: []string{"X-Api-Key"}},
		"invalid URL escape":         {Request: "GET /%zz"},
	} {
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), strings.TrimSpace(want)) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
	c := Explain{File: "-", Request: "GET /"}
	err := c.Run(t.Context(), cli.IO{Stdin: strings.NewReader(bad)})
	if err == nil || !strings.HasPrefix(err.Error(), "- is not accepted:\nrules[0].") ||
		strings.Count(err.Error(), "\n") != 6 {
		t.Errorf("%v, want 7 lines", err)
	}
}

// An interrupt ends a command that waits for its policy.
func TestInterruptWhileReading(t *testing.T) {
	never, write := io.Pipe()
	defer write.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, run := range []func(context.Context, cli.IO) error{
		(&Check{Files: []string{"-"}}).Run, (&Explain{File: "-", Request: "GET /"}).Run,
	} {
		err := run(ctx, cli.IO{Stdin: never, Stdout: io.Discard})
		if err == nil || !strings.Contains(err.Error(), "interrupted") {
			t.Error(err)
		}
	}
}

// A client that is not an address has the name that its bucket has.
func TestExplainAnUnknownClient(t *testing.T) {
	const policy = `{"name": "r", "limit_keys": ["ip:address"],
		"algorithm_config": {"rps": 1, "burst": 1}}`
	var out bytes.Buffer
	c := Explain{File: "-", Request: "GET /", From: netip.MustParseAddr("0.0.0.0")}
	err := c.Run(t.Context(), cli.IO{Stdin: strings.NewReader(policy), Stdout: &out})
	if got := out.String(); err != nil || !strings.HasPrefix(got, "GET / from unknown\n") ||
		!strings.Contains(got, "ip:address=unknown ") {
		t.Errorf("%v, got\n%s", err, got)
	}
}
