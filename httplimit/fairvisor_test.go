package httplimit

import (
	"net/http"
	"testing"
)

func TestFairvisorGrantedFields(t *testing.T) {
	s := newSite(t, `{"name": "per-org-rps", "limit_keys": ["header:x-api-key"],
		"algorithm": "token_bucket", "algorithm_config": {"tokens_per_second": 100, "burst": 200,
		"cost_source": "header:w"}}`)
	w := s.get("X-Api-Key: org-abc", "W: 112.5679")
	wants(t, w, "RateLimit-Limit: 200", "RateLimit-Remaining: 87", "RateLimit-Reset: 1",
		`RateLimit: "per-org-rps";r=87;t=1`, "Retry-After: ", "X-Fairvisor-Reason: ",
		"Cache-Control: ",
		"RateLimit-Policy: ", "X-RateLimit-Limit: ")
	if len(w.Header()) != 4 {
		t.Errorf("%v", w.Header())
	}
}

// The tests of this file are the examples of the page from which the format of policies comes:
// https://docs.fairvisor.com/docs/algorithms/token-bucket
var fairvisorExamples = []string{`{
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

func TestFairvisorTiers(t *testing.T) {
	s := newSite(t, fairvisorExamples[1])
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

func TestFairvisorFields(t *testing.T) {
	s := newSite(t, `{"name": "per-org-rps", "limit_keys": ["header:x-api-key"],
		"algorithm": "token_bucket", "algorithm_config": {"tokens_per_second": 100, "burst": 200,
		"cost_source": "fixed", "fixed_cost": 1, "default_cost": 1}}`, steady())
	for range 112 {
		s.get("X-Api-Key: org-abc")
	}
	wants(t, s.get("X-Api-Key: org-abc"), "RateLimit-Limit: 200", "RateLimit-Remaining: 87",
		"RateLimit-Reset: 1",
		`RateLimit: "per-org-rps";r=87;t=1`)
	// Retry-After is 2 on the page: 120 tokens at 100 a second, without jitter.
	s = newSite(t, `{"name": "per-org-rps", "limit_keys": [], "algorithm": "token_bucket",
		"algorithm_config": {"tokens_per_second": 100, "burst": 200, "fixed_cost": 160}}`, steady(),
		WithFields(Fields{Reason: "X-Fairvisor-Reason"}))
	s.get()
	w := s.get()
	wants(t, w, "Retry-After: 2", "RateLimit-Limit: 200", "RateLimit-Remaining: 0",
		"RateLimit-Reset: 2",
		"X-Fairvisor-Reason: token_bucket_exceeded")
	if w.Code != 429 {
		t.Errorf("status %d", w.Code)
	}
}
