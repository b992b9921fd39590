package proxy

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/redisurl"
	"github.com/seed-181794aa/ratelimit/internal/redistest"
)

// slowRule is a policy that grants a burst, and then almost nothing.
func slowRule(burst int) string {
	return fmt.Sprintf(`{"rules": [{"name": "slow", "limit_keys": ["ip:address"],
		"algorithm_config": {"tokens_per_second": 0.0001, "burst": %d}}]}`, burst)
}

// runShared runs a proxy with its buckets in a server.
func runShared(t *testing.T, address string, change func(*Command)) *running {
	t.Helper()
	return run(t, func(c *Command) {
		c.Redis = parseURL(t, address)
		c.RedisTimeout = time.Minute
		change(c)
	})
}

func parseURL(t *testing.T, text string) (u redisurl.URL) {
	t.Helper()
	if err := u.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return u
}

// statuses sends n requests to each URL in turn, and counts the responses by status.
func statuses(t *testing.T, n int, urls ...string) map[int]int {
	t.Helper()
	counts := map[int]int{}
	for range n {
		for _, u := range urls {
			resp, _ := get(t, u)
			counts[resp.StatusCode]++
		}
	}
	return counts
}

func TestProxiesShareALimit(t *testing.T) {
	server := redistest.Start(t)
	policy := file(t, slowRule(5))
	var proxies []*running
	var urls []string
	for range 2 {
		p := runShared(t, server.Addr, func(c *Command) { c.Policy = policy })
		proxies, urls = append(proxies, p), append(urls, p.proxy)
	}
	got := statuses(t, 4, urls...)
	if got[http.StatusOK] != 5 || got[http.StatusTooManyRequests] != 3 {
		t.Errorf("of 8 requests to two proxies: %v, want 5 granted and 3 refused", got)
	}
	_, text := get(t, proxies[0].admin+"/metrics")
	for _, want := range []string{
		`tb_redis_decisions_total{by="server",outcome="granted",rule="slow"} 3`,
		`tb_requests_total{outcome="refused",rule="slow",set=""} 1`,
		`tb_requests_total{outcome="granted",rule="slow",set=""} 3`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in the metrics", want)
		}
	}

	if err := proxies[0].Stop(); err != nil {
		t.Fatal(err)
	}
	restarted := runShared(t, server.Addr, func(c *Command) { c.Policy = policy })
	if got := statuses(t, 1, restarted.proxy); got[http.StatusTooManyRequests] != 1 {
		t.Errorf("after a restart: %v, want a refusal", got)
	}
}

func TestRedisIsDown(t *testing.T) {
	for failure, want := range map[string]int{
		"allow": http.StatusOK, "refuse": http.StatusServiceUnavailable,
	} {
		p := runShared(t, "127.0.0.1:1", func(c *Command) {
			c.Policy, c.RedisFailure = file(t, slowRule(1)), failure
		})
		p.Log.Until(t, "Redis does not answer yet")
		if got := statuses(t, 3, p.proxy); got[want] != 3 {
			t.Errorf("%s: %v, want 3 times %d", failure, got, want)
		}
		p.Log.Until(t, "the server does not decide")
	}
}
