package policy

import (
	"strings"
	"testing"
)

// adaptiveRule is a rule with this rate and these fields of adaptive.
func adaptiveRule(rate float64, adaptive string) string {
	return oneRule("[]", sprintf(`"tokens_per_second": %v, "burst": 10, "adaptive": {%s}`,
		rate, adaptive))
}

const adaptiveRange = `"min": 10, "max": 1000, "target_p99": "200ms"`

func TestAdaptiveErrors(t *testing.T) {
	const path = "algorithm_config.adaptive"
	for adaptive, want := range map[string]string{
		`"max": 9, "target_p99": "1s"`:             path + ".min is missing",
		`"min": 1, "max": 500`:                     path + ".target_p99 is missing",
		`"min": 1, "max": 500, "target_p99": "1"`:  path + ".target_p99 must be a duration",
		`"min": 1, "max": 500, "target_p99": "9h"`: path + ".target_p99 must be 1µs to 1h (got 9h0m0s)",
		`"min": 0, "max": 500, "target_p99": "1s"`: path + ".min must be > 0",
		`"min": 900, "max": 500, "target_p99": "1s"`: path +
			".max must be Min to 1e+09 tokens a second (got 500)",
		`"min": 1, "max": 99, "target_p99": "1s"`: "algorithm_config.tokens_per_second must be between " +
			"min and max of adaptive, because it is the first rate (got 100, want 1 to 99)",
		adaptiveRange + `, "x": 1`: path + ".x is an unknown field",
		``:                         path + ".min is missing",
	} {
		_, err := Parse([]byte(adaptiveRule(100, adaptive)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", adaptive, err, want)
		}
	}
	// The first rate may be the least one or the greatest.
	for _, adaptive := range []string{`"min": 0.5, "max": 9`, `"min": 0.1, "max": 0.5`} {
		mustParse(t, adaptiveRule(0.5, adaptive+`, "target_p99": "1s"`))
	}
	config := `"tokens_per_second": 100, "burst": 100, "adaptive": {` + adaptiveRange + `}`
	for policy, want := range map[string]string{
		oneRule("[]", config+`, "tiers": {"by": "header:plan", "limits": {
			"a": {"tokens_per_second": 1, "burst": 1}}}`): "must not be in a rule with tiers",
		oneRule(`["ip:address/64,/48"]`, config): "must not be in a rule with a key that has parent",
		`{"name": "r", "limit_keys": [], "on_limit": "delay", "max_delay": "1s",
			"algorithm_config": {` + config + `}}`: "must not be in a rule with on_limit delay",
	} {
		if _, err := Parse([]byte(policy)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", policy, err, want)
		}
	}
}

func TestAdaptiveWarnings(t *testing.T) {
	for keys, warns := range map[string]bool{`["ip:address"]`: true, `[]`: false} {
		p := mustParse(t, oneRule(keys, `"rps": 100, "burst": 5, "adaptive": {`+adaptiveRange+`}`))
		if got := strings.Join(p.Warnings(), "\n"); strings.Contains(got, "all keys together") != warns {
			t.Errorf("%s: %s", keys, got)
		}
	}
}
