package httplimit

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// requestFrom returns a request from an address.
func requestFrom(address string) *http.Request {
	r := request()
	r.RemoteAddr = "[" + address + "]:1"
	return r
}

// The holder of a /48 has 65,536 networks of a /64. The parents bound what they get together.
func TestParentNetworksAreChargedTogether(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("r", `["ip:address/64,/56,/48"]`, 2, "")))
	granted := 0
	for i := range 400 {
		if s.send(requestFrom(sprintf("2001:db8:1:%x::1", i*163))).Code == http.StatusOK {
			granted++
		}
	}
	if granted != 32 { // 2 · 4 · 4
		t.Errorf("%d requests from one /48 are granted, want 32", granted)
	}
	// A /56 has 8, and a /64 has 2.
	granted = 0
	for i := range 100 {
		if s.send(requestFrom(sprintf("2001:db8:2:%x::1", i))).Code == http.StatusOK {
			granted++
		}
	}
	if granted != 8 {
		t.Errorf("%d requests from one /56 are granted, want 8", granted)
	}
	for i, want := range []int{200, 200, 429} {
		if w := s.send(requestFrom(sprintf("2001:db8:3::%d", i))); w.Code != want {
			t.Errorf("request %d from one /64: status %d, want %d", i, w.Code, want)
		}
	}
}

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
		_, err := ParsePolicy([]byte(policy))
		if err == nil || !strings.Contains(err.Error(), "httplimit: policy:\n"+want) ||
			strings.Count(err.Error(), "\n") != 1 {
			t.Errorf("%s\n%v\nwant %s", policy, err, want)
		}
	}
	// An error of a key is reported once, however many parents there are.
	for key, p := range map[string]*Policy{
		"nosuch": mustParse(t, jsonRule("r", `["nosuch", "ip:address/64,/48"]`, 1, "")),
		"täg":    Rules(Rule{Name: "r", Keys: []string{"täg"}}),
	} {
		if _, err := New(p); err == nil || strings.Count(err.Error(), key) != 1 {
			t.Error(err)
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
