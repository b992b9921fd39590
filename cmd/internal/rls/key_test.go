package rls

import (
	"errors"
	"testing"

	envoy "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// A value may be an API key, so the live page has its hash, unless it is an address.
func TestKeysOfTheLivePage(t *testing.T) {
	key := []httplimit.KeyPart{
		{Name: "remote_address", Value: "192.0.2.1"}, {Name: "api key", Value: "k 1"}, {Name: "all"},
	}
	const (
		shown  = `remote_address=192.0.2.1 "api key"="k 1" all=`
		masked = `remote_address=192.0.2.1 "api key"=sha256:ca786f1e02cd all=`
	)
	c := Command{}
	if got := c.formatKey(key); got != masked {
		t.Errorf("%s, want %s", got, masked)
	}
	if got := c.formatKey(nil); got != "all requests" {
		t.Errorf("%s for no key", got)
	}
	c.ShowKeys = true
	if got := c.formatKey(key); got != shown {
		t.Errorf("%s, want %s", got, shown)
	}
}

// A bucket is reset by the texts of the live page, with its rule in the configuration or in the
// request.
func TestResetForgivesOneDescriptor(t *testing.T) {
	s, _ := newService(t, limit("k", "unit: year, requests_per_unit: 1")+
		"- {key: fixed, rate_limit: {unit: year, requests_per_unit: 0}}\n")
	brought := request(0, "k=a b")
	brought.Descriptors[0].Limit = &envoy.RateLimitDescriptor_RateLimitOverride{
		RequestsPerUnit: 1, Unit: typev3.RateLimitUnit_HOUR}
	for _, c := range []struct {
		request *ratelimit.RateLimitRequest
		label   string
	}{{request(0, "k=a b"), "d/k"}, {brought, "d/limit of the request: 1/HOUR"}} {
		send(t, s, request(1, "k=c"))
		send(t, s, c.request)
		for _, wrong := range [][2]string{
			{c.label, "k"}, {"d/k", "x=a"}, {"d/x", `k="a b"`}, {"d/fixed", "fixed=1"},
		} {
			if err := s.Reset(wrong[0], wrong[1]); !errors.Is(err, httplimit.ErrNoBucket) {
				t.Errorf("%q: %v", wrong, err)
			}
		}
		if err := s.Reset(c.label, `k="a b"`); err != nil {
			t.Error(err)
		}
		got := []string{short(send(t, s, c.request)), ask(t, s, "k=c")}
		expect(t, c.label, got, "OK OK:0", "OVER OVER:0")
	}
}
