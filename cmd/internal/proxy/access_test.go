package proxy

import (
	"net/http"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
	"github.com/seed-181794aa/ratelimit/httplimit"
)

const byKey = `{"rules": [{"name": "by-key", "limit_keys": ["header:x-api-key", "ip:address"],
	"algorithm_config": {"tokens_per_second": 0.1, "burst": 1}}]}`

// By default only refused requests are logged, with hashes in place of secret keys.
func TestAccessLog(t *testing.T) {
	upstream := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) }
	const start1 = `level=INFO msg=request client=127.0.0.1 method=GET host=h path=/p `
	const key = `rule=by-key key="header:x-api-key=sha256:6ab9f1eb8f7d ip:address=127.0.0.1" `
	granted := start1 + "status=200 bytes=5 " + key + "refused=false"
	refused := start1 + "status=429 bytes=223 " + key + "refused=true retry_after=10s"
	for access, want := range map[Access][]string{
		AccessOff: nil, AccessRefused: {refused}, AccessAll: {granted, refused},
	} {
		log := testkit.NewTranscript()
		_, url, _ := start(t, byKey, upstream, func(c *Config) {
			c.Log, c.Access = log.Logger(), access
		})
		for range 2 {
			get(t, url+"/p?token=secret", "Host", "h", "X-Api-Key", "k1")
		}
		for _, line := range want {
			if got := log.Until(t, "msg=request"); got != line {
				t.Errorf("%s: got\n%s\nwant\n%s", access, got, line)
			}
		}
		if n := len(log.Lines); n > 0 {
			t.Errorf("%s: %d unexpected lines", access, n)
		}
	}
}

// The log has the key that was charged, even if the policy changes before the answer ends.
func TestLoggedKeyIsTheOneCharged(t *testing.T) {
	log := testkit.NewTranscript()
	var p *Proxy
	p, url, _ := start(t, two, func(http.ResponseWriter, *http.Request) {
		policy, err := cli.ParsePolicy([]byte(strings.ReplaceAll(two, "ip:address", "header:x")))
		if err != nil || p.Limiter.SetPolicy(policy) != nil {
			t.Error("the policy is not accepted")
		}
	}, func(c *Config) { c.Log, c.Access = log.Logger(), AccessAll })
	get(t, url)
	if line := log.Until(t, "msg=request"); !strings.Contains(line, "key=\"ip:address=127.0.0.1\"") {
		t.Error(line)
	}
}

func TestShowKeys(t *testing.T) {
	key := []httplimit.KeyPart{{Name: "query:k", Value: "v"}}
	if got := (&Proxy{Config: Config{ShowKeys: true}}).formatKey(key); got != "query:k=v" {
		t.Error(got)
	}
}
