package httplimit

import (
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// In a table that is full of addresses of one kind, clients with addresses of the other kind do
// not evict each other: eight clients that use up their bursts get no second burst.
func TestFloodOfAddressesGetsNoSecondBurst(t *testing.T) {
	const keys, rounds = 8192, 100
	v4 := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}) }
	v6 := func(i int) netip.Addr { // a network each
		return netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 0, byte(i >> 8), byte(i), 15: 1})
	}
	for _, tt := range []struct {
		name        string
		rest, eight func(int) netip.Addr
	}{{"IPv6", v4, v6}, {"IPv4", v6, v4}} {
		s := newSite(t, oneRule(`["ip:address"]`, `"rps": 1, "burst": 10`),
			WithLimiterOptions(tb.WithMaxKeys(keys)))
		from := func(a netip.Addr) bool {
			r := request()
			r.RemoteAddr = netip.AddrPortFrom(a, 1234).String()
			return s.send(r).Code == http.StatusOK
		}
		for i := range keys {
			from(tt.rest(i))
		}
		s.now = s.now.Add(30 * time.Second)
		granted := 0
		for range rounds {
			for i := range 8 {
				for range 10 {
					if from(tt.eight(i)) {
						granted++
					}
				}
			}
		}
		if granted != 80 {
			t.Errorf("%s: %d of %d requests granted, want 80", tt.name, granted, rounds*80)
		}
	}
}
