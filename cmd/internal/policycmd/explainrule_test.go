package policycmd

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
)

func TestExplainShowsWhatIsSpecialAboutARule(t *testing.T) {
	const tiers = `{"name": "r", "limit_keys": ["header:k"], "algorithm_config": {"rps": 1,
		"burst": 5, "tiers": {"by": "header:plan", "limits": {"gold": {"rps": 10, "burst": 50}}}}}`
	const classes = `{"name": "r", "limit_keys": [], "priority": {"by": "header:class", "keep": {
		"bot": 0.5, "*": 0}}, "algorithm_config": {"rps": 1, "burst": 8, "fixed_cost": %d}}`
	for _, tt := range []struct {
		policy string
		header []string
		want   string
	}{
		{`{"name": "r", "limit_keys": [], "on_limit": "delay", "max_delay": "1s",
			"algorithm_config": {"rps": 1, "burst": 2}}`,
			nil, "granted, 1 left; an empty one delays by up to 1s\n"},
		{`{"name": "r", "limit_keys": [], "block": "90m", "algorithm_config": {"rps": 1, "burst": 2}}`,
			nil, "granted, 1 left; an empty one blocks for 1h30m0s\n"},
		{`{"name": "r", "limit_keys": [], "algorithm_config": {"rps": 100, "burst": 20,
			"adaptive": {"min": 50, "max": 4000, "target_p99": "200ms"}}}`,
			nil, "  100/s, adapts from 50/s to 4000/s  "},
		{tiers, []string{"K: 1", "Plan: gold"},
			"\n" + `r, tier "gold"  enforce  header:k=1  1     50     10/s  granted, 49 left` + "\n"},
		{tiers, []string{"K: 1", "Plan: lead"},
			"\n" + `r     enforce  header:k=1  1     5      1/s   granted, 4 left` + "\n"},
		{fmt.Sprintf(classes, 2), []string{"Class: bot"},
			"\n" + `r, class "bot"  enforce  all requests  2     8      1/s   granted, 2 left` + "\n"},
		{fmt.Sprintf(classes, 5), nil,
			"\n" + `r, class "*"  enforce  all requests  5     8      1/s   granted, 3 left` + "\n"},
		{fmt.Sprintf(classes, 5), []string{"Class: bot"},
			"refused: costs more than the class may take\n"},
	} {
		var out bytes.Buffer
		c := Explain{
			File: "-", Request: "GET /", Header: tt.header, From: netip.MustParseAddr("::1"),
		}
		err := c.Run(t.Context(), cli.IO{Stdin: strings.NewReader(tt.policy), Stdout: &out})
		if err != nil || !strings.Contains(out.String(), tt.want) {
			t.Errorf("%s, %q: %v, got\n%s\nwant %s", tt.policy, tt.header, err, out.String(), tt.want)
		}
	}
}
