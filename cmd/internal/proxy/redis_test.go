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

func TestReloadKeepsTheBucketsInRedis(t *testing.T) {
	server := redistest.Start(t)
	name := file(t, slowRule(3))
	p := runShared(t, server.Addr, func(c *Command) { c.Policy = name })
	if got := statuses(t, 4, p.proxy); got[http.StatusOK] != 3 {
		t.Fatalf("%v, want 3 granted", got)
	}
	write(t, name, slowRule(5))
	p.Log.Until(t, "policy reloaded")
	if got := statuses(t, 4, p.proxy); got[http.StatusTooManyRequests] != 4 {
		t.Errorf("after the burst went from 3 to 5: %v, want 4 refused", got)
	}
	_, text := get(t, p.admin+"/metrics")
	want := `tb_requests_total{outcome="refused",rule="slow",set=""} 5`
	if !strings.Contains(text, want) {
		t.Errorf("no %s in the metrics", want)
	}

	write(t, name, strings.Replace(slowRule(5), `"name": "slow"`, `"name": "other"`, 1))
	p.Log.Until(t, "policy reloaded")
	_, text = get(t, p.admin+"/metrics")
	if strings.Contains(text, `rule="slow"`) || !strings.Contains(text, `rule="other"`) {
		t.Error("the metrics are not those of the rules in force")
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
		p.Log.Until(t, "a limiter cannot decide")
	}
}

// The metrics of Redis name the set of a rule, too.
func TestMetricsOfSetsInRedis(t *testing.T) {
	const rule = `{"name": "r", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 2}}`
	set := func(id string) string {
		return `{"id": "` + id + `", "spec": {"rules": [` + rule + `]}}`
	}
	policy := `{"bundle_version": 1, "policies": [` + set("a") + "," + set("b") + `]}`
	p := runShared(t, redistest.Start(t).Addr, func(c *Command) { c.Policy = file(t, policy) })
	statuses(t, 1, p.proxy)
	_, text := get(t, p.admin+"/metrics")
	for _, want := range []string{`rule="a/r"`, `rule="b/r"`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in the metrics", want)
		}
	}
}
