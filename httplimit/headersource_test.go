package httplimit

import (
	"net/http"
	"net/netip"
	"slices"
	"testing"
)

// WithHeader is asked for the fields of keys, matches, tiers, costs, claims and trusted proxies, by
// their canonical names. Request.Header is not.
func TestHeaderComesFromWithHeader(t *testing.T) {
	fields := http.Header{
		"X-Key": {"k"}, "X-Plan": {"gold"}, "X-Tier": {"big"}, "X-Cost": {"3"},
		"X-Forwarded-For": {"198.51.100.7"}, "Authorization": {token(`{"sub": "s"}`)},
	}
	var events []Event
	s := newSite(t, jsonRules(`"jwt": "unverified"`, `{"name": "r",
		"limit_keys": ["header:x-key", "ip:address", "jwt:sub"], "match": {"header:x-plan": "gold"},
		"algorithm_config": {"rps": 1, "burst": 10, "cost_source": "header:x-cost",
		"tiers": {"by": "header:x-tier", "limits": {"big": {"rps": 1, "burst": 20}}}}}`),
		WithClientAddress(ClientAddress{Trusted: []netip.Prefix{netip.MustParsePrefix("::/0")}}),
		WithHeader(func(_ *http.Request, name string) []string { return fields[name] }),
		WithHooks(Hooks{Granted: func(_ *http.Request, e Event) { events = append(events, e) }}))
	r := request("X-Key: other", "X-Plan: other", "X-Cost: 9", "X-Tier: other")
	r.RemoteAddr = "[2001:db8::1]:443"
	s.send(r)
	want := []KeyPart{{"header:x-key", "k"}, {"ip:address", "198.51.100.7"}, {"jwt:sub", "s"}}
	if len(events) != 1 || events[0].Remaining != 17 || !slices.Equal(events[0].Key, want) {
		t.Errorf("%+v", events)
	}
	if a := s.ClientAddress(r); a != netip.MustParseAddr("198.51.100.7") {
		t.Errorf("the client is %v", a)
	}
	fields["X-Key"] = []string{"k", "k"}
	if w := s.send(r); w.Code != http.StatusBadRequest {
		t.Errorf("a repeated field: status %d, want 400", w.Code)
	}
}
