package httplimit

import (
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
)

// The examples of the page that the format of policies comes from.
var pageExamples = []string{`{
"name": "global-rps",
"limit_keys": ["ip:address"],
"algorithm": "token_bucket",
"algorithm_config": {
"rps": 5,
"burst": 10
}
}`, `{
"rules": [
{
"name": "enterprise",
"limit_keys": ["header:x-api-key"],
"algorithm": "token_bucket",
"algorithm_config": { "rps": 1000, "burst": 2000 },
"match": { "jwt:plan": "enterprise" }
},
{
"name": "free",
"limit_keys": ["header:x-api-key"],
"algorithm": "token_bucket",
"algorithm_config": { "rps": 10, "burst": 20 }
}
]
}`}

func TestPageAddresses(t *testing.T) {
	s := newSite(t, pageExamples[0])
	s.granted(10)
	other := from("198.51.100.7:1")
	if w := s.send(other); w.Header().Get("RateLimit-Remaining") != "9" {
		t.Errorf("%v", w.Header())
	}
}

func TestPageTiers(t *testing.T) {
	s := newSite(t, pageExamples[1])
	s.granted(20, "X-Api-Key: a")
	for i := range 2001 {
		r := request("X-Api-Key: a")
		r = r.WithContext(ContextWithClaims(r.Context(), map[string]any{"plan": "enterprise"}))
		if w := s.send(r); (w.Code == http.StatusOK) != (i < 2000) {
			t.Fatalf("request %d: status %d", i, w.Code)
		}
	}
	s.unlimited("/")
}

func TestPageHeaders(t *testing.T) {
	s := newSite(t, `{"name": "per-org-rps", "limit_keys": ["header:x-api-key"],
		"algorithm": "token_bucket", "algorithm_config": {"tokens_per_second": 100, "burst": 200,
		"cost_source": "fixed", "fixed_cost": 1, "default_cost": 1}}`, steady())
	for range 112 {
		s.get("X-Api-Key: org-abc")
	}
	wants(t, s.get("X-Api-Key: org-abc"), "RateLimit-Limit: 200", "RateLimit-Remaining: 87",
		"RateLimit-Reset: 1",
		`RateLimit: "per-org-rps";r=87;t=1`)
	// The wait of 2 on the page: 120 tokens at 100 a second, and no jitter.
	s = newSite(t, `{"name": "per-org-rps", "limit_keys": [], "algorithm": "token_bucket",
		"algorithm_config": {"tokens_per_second": 100, "burst": 200, "fixed_cost": 160}}`, steady())
	s.get()
	w := s.get()
	wants(t, w, "Retry-After: 2", "RateLimit-Limit: 200", "RateLimit-Remaining: 0",
		"RateLimit-Reset: 2",
		"X-Fairvisor-Reason: token_bucket_exceeded")
	if w.Code != 429 {
		t.Errorf("status %d", w.Code)
	}
}

func TestPageVariableCost(t *testing.T) {
	s := newSite(t, oneRule("[]", `"tokens_per_second": 100, "burst": 1000,
		"cost_source": "header:x-request-weight", "default_cost": 1`))
	wants(t, s.get("X-Request-Weight: 5"), "RateLimit-Remaining: 995")
	wants(t, s.get(), "RateLimit-Remaining: 994")
	wants(t, s.get("X-Request-Weight: heavy"), "RateLimit-Remaining: 993")
}

// Every block of JSON in the documentation is a policy that is accepted.
func TestDocumentationLoads(t *testing.T) {
	text, err := os.ReadFile("../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllSubmatch(text, -1)
	if len(blocks) < 8 {
		t.Fatalf("%d blocks", len(blocks))
	}
	for _, b := range blocks {
		p, err := ParsePolicy(b[1])
		if err == nil {
			_, err = New(p, WithExtractor("tenant", func(*http.Request) string { return "" }))
		}
		if err != nil {
			t.Errorf("%s\n%v", b[1], err)
		}
	}
	// And every field has its line.
	for _, field := range strings.Fields(`name limit_keys match on_missing mode algorithm
		algorithm_config
		tokens_per_second rps burst cost_source fixed_cost default_cost min_cost max_cost rules
		evaluation selector hosts methods pathExact pathPrefix fallback_limit jwt policies id spec
		bundle_version issued_at expires_at kill_switches`) {
		if !strings.Contains(string(text), "`"+field+"`") {
			t.Errorf("%s is not documented", field)
		}
	}
}
