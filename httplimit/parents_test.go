package httplimit

import (
	"net/http"
	"strings"
	"testing"
)

// The holder of a /48 has 65,536 networks of a /64. The parents bound what they get together.
func TestParentNetworksAreChargedTogether(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("r", `["ip:address/64,/56,/48"]`, 2, "")))
	granted := 0
	for i := range 400 {
		if s.send(by(sprintf("2001:db8:1:%x::1", i*163))).Code == http.StatusOK {
			granted++
		}
	}
	if granted != 32 { // 2 · 4 · 4
		t.Errorf("%d requests from one /48 are granted, want 32", granted)
	}
	// A /56 has 8, and a /64 has 2.
	granted = 0
	for i := range 100 {
		if s.send(by(sprintf("2001:db8:2:%x::1", i))).Code == http.StatusOK {
			granted++
		}
	}
	if granted != 8 {
		t.Errorf("%d requests from one /56 are granted, want 8", granted)
	}
	for i, want := range []int{200, 200, 429} {
		if w := s.send(by(sprintf("2001:db8:3::%d", i))); w.Code != want {
			t.Errorf("request %d from one /64: status %d, want %d", i, w.Code, want)
		}
	}
}

// An error of a key is reported once, however many parents there are.
func TestKeyWithParentsHasOneError(t *testing.T) {
	for key, p := range map[string]*Policy{
		"nosuch": mustParse(t, jsonRule("r", `["nosuch", "ip:address/64,/48"]`, 1, "")),
		"täg":    Rules(Rule{Name: "r", Keys: []string{"täg"}}),
	} {
		if _, err := New(p); err == nil || strings.Count(err.Error(), key) != 1 {
			t.Error(err)
		}
	}
}
