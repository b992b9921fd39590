package httplimit

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Every block of JSON in docs/policy.md is a valid policy, and every field has its line.
func TestParseExamplesOfTheDocumentation(t *testing.T) {
	text, err := os.ReadFile("../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllSubmatch(text, -1)
	if len(blocks) < 6 {
		t.Fatalf("%d blocks", len(blocks))
	}
	for _, b := range blocks {
		p, err := ParsePolicy(b[1])
		if err == nil {
			_, err = New(p)
		}
		if err != nil {
			t.Errorf("%s\n%v", b[1], err)
		}
	}
	for _, field := range strings.Fields(`name limit_keys match on_missing mode algorithm
		algorithm_config
		tokens_per_second rps burst cost_source fixed_cost default_cost min_cost max_cost rules
		evaluation selector hosts methods pathExact pathPrefix fallback_limit jwt policies id spec
		on_limit max_delay max_waiting hide_cost_header bundle_version issued_at expires_at
		kill_switches`) {
		if !strings.Contains(string(text), "`"+field+"`") {
			t.Errorf("%s is not documented", field)
		}
	}
}
