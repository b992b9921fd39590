package replay

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
	"github.com/seed-181794aa/ratelimit/cmd/internal/proxy"
	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
)

const severalRules = `{"policies": [
	{"id": "api", "spec": {"selector": {"methods": ["GET", "POST"], "pathPrefix": "/v1/"}, "rules": [
		{"name": "address", "limit_keys": ["ip:address"],
			"algorithm_config": {"tokens_per_second": 0.1, "burst": 5}},
		{"name": "key", "limit_keys": ["header:x-api-key"], "algorithm_config":
			{"tokens_per_second": 0.3, "burst": 4, "cost_source": "query:n", "max_cost": 3}},
		{"name": "forwarded", "limit_keys": ["header:x-forwarded-for"],
			"algorithm_config": {"tokens_per_second": 0.2, "burst": 3}},
		{"name": "host", "mode": "shadow", "limit_keys": ["header:host"],
			"algorithm_config": {"tokens_per_second": 0.1, "burst": 5}}]}},
	{"id": "all", "spec": {"rules": [
		{"name": "everything", "limit_keys": [],
			"algorithm_config": {"tokens_per_second": 1, "burst": 3}}]}}]}`

// The same requests go through tb-proxy and, as a log, through a replay.
func TestAReplayOfAPolicyPredictsTheProxy(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer upstream.Close()
	target, _ := url.Parse(upstream.URL)
	policy, err := cli.ParsePolicy([]byte(severalRules))
	if err != nil {
		t.Fatal(err)
	}
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	now := time.Unix(1e9, 0)
	p, err := proxy.New(proxy.Config{
		Upstream: target, Policy: policy, Log: slog.New(slog.DiscardHandler),
		Client: httplimit.ClientAddress{Trusted: trusted, Header: "X-Forwarded-For"},
		Options: []httplimit.Option{
			httplimit.WithLimiterOptions(tb.WithClock(func() time.Time { return now })),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	pick := func(values ...string) string { return values[rnd.IntN(len(values))] }
	var log strings.Builder
	statuses := map[int]uint64{}
	for range 600 {
		now = now.Add(time.Duration(rnd.IntN(1000)) * time.Millisecond)
		method, host, key := pick("GET", "POST", "PUT"), pick("a", "b"), pick("", "k", "l")
		uri := pick("/v1/x", "/v2", "//v1/./y", "/v1%2f..%2fz") + pick("", "?n=2", "?n=9")
		peer, client := pick("10.1.1.1", "10.1.1.2", "192.0.2.1"), pick("1.1.1.1", "2001:db8::1",
			"2001:db8::2", "9.9.9.9, 1.1.1.2", "1.1.1.3\n1.1.1.4")
		fmt.Fprintf(&log, `{"ts": %d.%03d, "request": {"remote_ip": %q, "method": %q,`+
			`"host": %q, "uri": %q, "headers": {"X-Forwarded-For": ["%s"], "X-Api-Key": [%q]}}}`+"\n",
			now.Unix(), now.Nanosecond()/1e6, peer, method, host, uri,
			strings.ReplaceAll(client, "\n", `","`), key)
		r := httptest.NewRequest(method, uri, nil)
		r.Host, r.RemoteAddr = host, peer+":1024"
		r.Header["X-Forwarded-For"] = strings.Split(client, "\n")
		if key != "" {
			r.Header.Set("X-Api-Key", key)
		}
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		statuses[w.Code]++
	}
	o, err := policyOptions(t, severalRules)
	if err != nil {
		t.Fatal(err)
	}
	o.Trusted = []cli.Network{{Prefix: trusted[0]}}
	got := replay(t, o, input("a.log", log.String())).Policy
	rejected := uint64(0) // because a field is sent twice
	for i, s := range p.Limiter.Stats() {
		r := got.Rules[i]
		rejected += s.Rejected
		if r.Rule != s.Label || r.Granted != s.Granted+s.ShadowGranted || r.Granted == 0 ||
			r.Refused != s.Refused+s.Rejected+s.ShadowRefused || r.Refused == 0 {
			t.Errorf("%+v; the proxy: %+v", r, s)
		}
	}
	if got.missing != nil || got.Granted != statuses[200] || got.Refused != statuses[429]+rejected ||
		got.Unclear+rejected != statuses[400] || rejected == 0 || got.Unclear == 0 {
		t.Errorf("%d granted, %d refused, %d unclear (%v); the proxy: %v, %d rejected",
			got.Granted, got.Refused, got.Unclear, got.missing, statuses, rejected)
	}
}
