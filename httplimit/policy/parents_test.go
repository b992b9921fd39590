package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

func TestParentNetworksThatAreWrong(t *testing.T) {
	for policy, want := range map[string]string{
		jsonRule("r", `["ip:address/64,/64"]`, 1, ""):   "limit_keys[0] must be ip:address, with IPv6",
		jsonRule("r", `["x", "ip:address/6,8"]`, 1, ""): "limit_keys[1] must be ip:address, with IPv6",
		jsonRule("r", `["ip:address/48,/64"]`, 1, ""):   "limit_keys[0] must be ip:address, with IPv6",
		jsonRule("r", `["ip:address/"]`, 1, ""):         "limit_keys[0] must be ip:address, with IPv6",
		jsonRule("r", `["ip:address/0"]`, 1, ""):        "limit_keys[0] must be ip:address, with IPv6",
		jsonRule("r", `["ip:address/064"]`, 1, ""):      "limit_keys[0] must be ip:address, with IPv6",
		jsonRule("r", `["ip:address/129"]`, 1, ""):      "limit_keys[0] must be ip:address, with IPv6",
		jsonRule("r", `["ip:address", "ip:address/64"]`, 1, ""): "limit_keys[1] must be the only " +
			`ip:address (got "ip:address" and "ip:address/64")`,
		jsonRule("r", `[]`, 1, `"match": {"ip:address/64": "::"}`): `match["ip:address/64"] must be ` +
			`without a prefix, because an address is compared`,
		jsonRule("r", `["ip:address/64,/48"]`, 1<<29, ""): "limit_keys have a parent with too high",
		jsonRules("", jsonRule("r", `["x", "ip:address/64,/48"]`, 1, ""),
			jsonRule("r/48", "[]", 1, "")): "" +
			`rules[1].name must be unique (got "r/48" again)`,
	} {
		_, err := Parse([]byte(policy))
		if err == nil || !strings.Contains(err.Error(), "httplimit: policy:\n"+want) ||
			strings.Count(err.Error(), "\n") != 1 {
			t.Errorf("%s\n%v\nwant %s", policy, err, want)
		}
	}
}

func TestLimitOfAParent(t *testing.T) {
	const most = tb.MaxCapacity
	for _, c := range []struct{ limit, parent tb.Limit }{
		{tb.Limit{Capacity: 10, Tokens: 3, Per: time.Second},
			tb.Limit{Capacity: 40, Tokens: 12, Per: time.Second}},
		{tb.Limit{Capacity: most / 4, Tokens: 2, Per: 8}, tb.Limit{Capacity: most, Tokens: 8, Per: 8}},
		{tb.Limit{Capacity: most/4 + 1, Tokens: 2, Per: 8}, tb.Limit{}},
		{tb.Limit{Capacity: 10, Tokens: 2, Per: 7}, tb.Limit{}},
		{tb.Limit{Tokens: 2, Per: 8}, tb.Limit{}},
	} {
		if got := times(c.limit, 4); got != c.parent {
			t.Errorf("%+v: %+v, want %+v", c.limit, got, c.parent)
		}
	}
}
