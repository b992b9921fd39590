package rls

import (
	"testing"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// A value may be an API key, so the live page has its hash, unless it is an address.
func TestKeysOfTheLivePage(t *testing.T) {
	key := []httplimit.KeyPart{
		{Name: "remote_address", Value: "192.0.2.1"}, {Name: "api key", Value: "k 1"}, {Name: "all"},
	}
	const (
		shown  = `remote_address=192.0.2.1 api key="k 1" all=`
		masked = "remote_address=192.0.2.1 api key=sha256:ca786f1e02cd all="
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
