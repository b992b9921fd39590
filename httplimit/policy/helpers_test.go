package policy

import (
	"fmt"
	"strings"
	"testing"
)

var (
	sprint  = fmt.Sprint
	sprintf = fmt.Sprintf
)

func mustParse(t testing.TB, policy string) *Policy {
	t.Helper()
	p, err := Parse([]byte(policy))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// oneRule is a policy of a rule with these keys and fields of algorithm_config.
func oneRule(keys, config string) string {
	return sprintf(`{"name": "r", "limit_keys": %s, "algorithm": "token_bucket",
		"algorithm_config": {%s}}`, keys, config)
}

// jsonRule returns a rule of one token a second with this burst, and more fields.
func jsonRule(name, keys string, burst int, more string) string {
	if more != "" {
		more = ", " + more
	}
	return sprintf(`{"name": %q, "limit_keys": %s, "algorithm": "token_bucket",
		"algorithm_config": {"rps": 1, "burst": %d}%s}`, name, keys, burst, more)
}

// adaptiveRange is the fields of a range that fits a rate of 100.
const adaptiveRange = `"min": 10, "max": 1000, "target_p99": "200ms"`

func jsonRules(more string, rules ...string) string {
	if more != "" {
		more += ","
	}
	return sprintf(`{%s"rules": [%s]}`, more, strings.Join(rules, ","))
}
