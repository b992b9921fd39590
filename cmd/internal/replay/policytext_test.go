package replay

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/tb"
)

func TestAPolicyInJSONHasListsNotNulls(t *testing.T) {
	o, err := policyOptions(t, `{"name": "a", "limit_keys": [],
		"algorithm_config": {"tokens_per_second": 1, "burst": 1}}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, log := range []string{"x\n", line("a", 1, 1) + line("a", 1, 1)} {
		res, _ := Run(t.Context(), o, accesslog.Schema{}, []Input{input("a.log", log)})
		text, err := json.Marshal(&res.Report)
		if err != nil || strings.Contains(string(text), "null") {
			t.Errorf("%s, %v", text, err)
		}
	}
}

func TestAPolicyAsText(t *testing.T) {
	rep := replayPolicy(t, `{"rules": [
		{"name": "a", "limit_keys": ["ip:address"],
			"algorithm_config": {"tokens_per_second": 1, "burst": 1}},
		{"name": "s", "mode": "shadow", "limit_keys": [],
			"algorithm_config": {"tokens_per_second": 1, "burst": 1}}]}`,
		input("a.log", line("1.1.1.1", 1, 1)+line("1.1.1.1", 1, 1)+line("1.1.1.2", 1, 1)+
			strings.Replace(line("1.1.1.1", 1, 1), "/p", "/..;/", 1)))
	var b strings.Builder
	if err := rep.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	const want = `log       a.log: 4 lines, common
time      2015-05-17 10:00:01 to 2015-05-17 10:00:01 UTC (0s)

requests             4
granted              2   50.0 %
refused              1   25.0 %
unclear              1   25.0 %   no path that all servers read alike: decided by no rule

  granted  refused   share  keys refused     mode  rule
        2        1  33.3 %             1  enforce  a
        1        1  50.0 %             1   shadow  s

Refused most by a:

  refused  key
        1  ip:address=1.1.1.1

Refused most by s:

  refused  key
        1  all requests
`
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A table that is too small shows.
func TestAPolicyWithFewKeys(t *testing.T) {
	o, err := policyOptions(t, `{"name": "a", "limit_keys": ["ip:address"],
		"algorithm_config": {"tokens_per_second": 0.001, "burst": 2}}`)
	if err != nil {
		t.Fatal(err)
	}
	o.MaxKeys = 1
	log := input("a", line("1.1.1.1", 1, 1)+line("1.1.1.2", 1, 1)+line("1.1.1.2", 1, 1))
	rep := replay(t, o, log).Report
	if r := rep.Policy.Rules[0]; r.EvictedInDebt != 1 || r.Forgiven != 1 || r.RefusedNew != 0 ||
		!strings.Contains(rendered(t, &rep), "\na; 1 key evicted in debt\n") {
		t.Errorf("%+v\n%s", r, rendered(t, &rep))
	}
	o.Overflow = tb.RefuseNew
	rep = replay(t, o, log).Report
	if r := rep.Policy.Rules[0]; r.EvictedInDebt != 0 || r.RefusedNew != 2 || r.KeysRefused != 1 ||
		!strings.Contains(rendered(t, &rep), "\na; 2 refused: the key was new and the table full\n") {
		t.Errorf("%+v\n%s", r, rendered(t, &rep))
	}
}
