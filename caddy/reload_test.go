package tokenbucket

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// site is a site with a limiter of this name and rules.
func site(name, rules string) string {
	return "http://:80 {\ntoken_bucket " + name + " {\n" + rules + "}\nrespond ok\n}"
}

func TestAReloadKeepsTheBuckets(t *testing.T) {
	kept := perHour("kept", "2", "key none\npath /kept")
	s := start(t, site("api", kept+perHour("changed", "2", "key none\npath /changed")+
		perHour("renamed", "1", "key none\npath /renamed")))
	s.want(200, "/kept")
	s.want(200, "/changed")
	s.want(200, "/renamed")
	if err := s.load(site("api", kept+perHour("changed", "5", "key none\npath /changed")+
		perHour("new-name", "1", "key none\npath /renamed"))); err != nil {
		t.Fatal(err)
	}
	s.want(200, "/kept")
	s.want(429, "/kept")
	s.want(200, "/changed").fields(t, "RateLimit-Limit: 5") // a larger burst gives no tokens
	s.want(429, "/changed")
	s.want(200, "/renamed")
}

// A reload that changes only the look of responses, or how many may wait, keeps the buckets.
func TestANewLookKeepsTheBuckets(t *testing.T) {
	rule := perHour("r", "8", "key none")
	s := start(t, site("api", rule))
	s.want(200).fields(t, "RateLimit-Remaining: 7")
	for _, tt := range []struct{ option, field string }{
		{"policy_field", `RateLimit-Policy: "r";q=8;w=28800`},
		{"x_ratelimit", "X-RateLimit-Remaining: 5"},
		{"reason_field X-Why", "RateLimit-Policy:"}, // not any more
		{"shared_secret s", "RateLimit-Remaining: 3"},
		{"max_waiting 9", "RateLimit-Remaining: 2"},
		{"fields refused", "RateLimit-Remaining:"},
		{"", "RateLimit-Remaining: 0"},
	} {
		if err := s.load(site("api", tt.option+"\n"+rule)); err != nil {
			t.Fatal(err)
		}
		s.want(200).fields(t, tt.field)
	}
	s.want(429).fields(t, "X-Why:")
	if err := s.load(site("api", "reason_field X-Why\n"+rule)); err != nil {
		t.Fatal(err)
	}
	s.want(429).fields(t, "X-Why: token_bucket_exceeded")
}

// The policy in force stays if Caddy rejects the new configuration, whatever the stage.
func TestAFailedReloadChangesNothing(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	handler := func(h map[string]any) map[string]any {
		return map[string]any{
			"routes": []any{map[string]any{"handle": []any{h}}}, "listen": []string{"127.0.0.1:0"},
		}
	}
	for name, other := range map[string]map[string]any{
		"a limiter":       handler(map[string]any{"handler": "token_bucket", "policy_file": "/missing"}),
		"another handler": handler(map[string]any{"handler": "missing"}),
		"the start":       {"listen": []string{taken.Addr().String()}}, // when all is provisioned
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, site("api", perHour("r", "3", "key none")))
			s.want(200)
			config, err := adapt(site("api", perHour("r", "1", "key none")))
			if err != nil {
				t.Fatal(err)
			}
			s.listen(config, "127.0.0.1:0")
			at(config, "apps", "http", "servers")["other"] = other
			if err := s.run(config); err == nil {
				t.Fatal("the reload succeeded")
			}
			s.want(200).fields(t, "RateLimit-Limit: 3")
			s.want(200)
			s.want(429)
			if n, _ := limiters.References(poolKey{"api", "{}"}); n != 1 {
				t.Errorf("%d references to the limiter, want 1", n)
			}
		})
	}
}

// Caddy finishes some work after it says that a configuration has started, such as to load another
// one, and rejects the configuration if that fails.
func TestAReloadThatFailsAfterTheStart(t *testing.T) {
	none := httptest.NewServer(http.NotFoundHandler())
	defer none.Close()
	s := start(t, site("api", perHour("r", "3", "key none")))
	s.want(200)
	config := s.config(site("api", perHour("r", "5", "key none")), "127.0.0.1:0")
	config["admin"] = map[string]any{"disabled": true, "config": map[string]any{
		"persist": false, "load": map[string]any{"module": "http", "url": none.URL},
	}}
	if err := s.run(config); err == nil {
		t.Fatal("the reload succeeded")
	}
	s.want(200).fields(t, "RateLimit-Limit: 3")
	s.want(200)
	s.want(429)
}

func TestALimiterEndsWithItsLastConfiguration(t *testing.T) {
	s := start(t, site("api", perHour("r", "1", "key none")))
	s.want(200)
	s.want(429)
	if err := s.load(site("", perHour("r", "1", "key none"))); err != nil {
		t.Fatal(err)
	}
	if _, ok := limiters.References(poolKey{"api", "{}"}); ok {
		t.Error("the limiter is still there")
	}
	s.want(200)
	if err := s.load(site("", "max_keys 10\n"+perHour("r", "1", "key none"))); err != nil {
		t.Fatal(err)
	}
	s.want(200) // other settings, so another limiter
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	limiters.Range(func(key, _ any) bool {
		t.Errorf("%v is still there", key)
		return true
	})
}

// Requests that arrive during reloads are decided by the same buckets. A reload closes connections
// that have sent no request yet, so some requests get no answer.
func TestReloadsDuringRequests(t *testing.T) {
	const burst, clients, reloads = 1000, 4, 10
	config := site("", perHour("r", strconv.Itoa(burst), "key none"))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String() // a port that stays the same in reloads
	_ = l.Close()
	s := start(t, config)
	load := func() {
		if err := s.run(s.config(config, address)); err != nil {
			t.Error(err)
		}
	}
	load()
	s.url = "http://" + address
	s.client.Transport = &http.Transport{DisableKeepAlives: true}
	var granted atomic.Int64
	status := func() int { // 0 for no answer
		w, err := s.client.Get(s.url)
		if err != nil {
			return 0
		}
		_ = w.Body.Close()
		if w.StatusCode == http.StatusOK {
			granted.Add(1)
		}
		return w.StatusCode
	}
	var tasks sync.WaitGroup
	answered, loaded := make(chan struct{}, 1), make(chan struct{})
	for range clients {
		tasks.Go(func() {
			for {
				select {
				case <-loaded:
					return
				default:
				}
				if status() == 0 {
					continue
				}
				select {
				case answered <- struct{}{}:
				default:
				}
			}
		})
	}
	for range reloads { // each among requests
		<-answered
		<-answered
		load()
	}
	close(loaded)
	tasks.Wait()
	for status() != http.StatusTooManyRequests {
	}
	if n := granted.Load(); n != burst {
		t.Errorf("%d requests are granted, want %d", n, burst)
	}
}

func TestAReloadReadsThePolicyFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "policy.json")
	write := func(burst int) {
		text := fmt.Sprintf(`{"name": "r", "limit_keys": ["ip:address"],
			"algorithm_config": {"tokens_per_second": 0.001, "burst": %d}}`, burst)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(2)
	s := start(t, site("", "policy_file "+name+"\n"))
	s.want(200)
	write(9)
	s.want(200).fields(t, "RateLimit-Limit: 2")
	if err := s.load(site("", "policy_file "+name+"\n")); err != nil {
		t.Fatal(err)
	}
	s.want(429).fields(t, "RateLimit-Limit: 9")
}

func TestHandlersShareALimiter(t *testing.T) {
	rule := perHour("r", "1", "key none")
	block := "token_bucket api {\n" + rule + "}\n"
	s := start(t, "http://a.example {\n"+block+"respond ok\n}\nhttp://b.example {\n"+block+
		"respond ok\n}\nhttp://c.example {\ntoken_bucket other {\n"+rule+"}\nrespond ok\n}")
	s.want(200, "Host: a.example")
	s.want(429, "Host: b.example")
	s.want(200, "Host: c.example")
}

func TestConflictingPoliciesAreAnError(t *testing.T) {
	for _, other := range []string{
		"token_bucket {\n" + perHour("r", "2", "key none") + "}\n",
		"token_bucket {\nfields refused\n" + perHour("r", "1", "key none") + "}\n",
		"token_bucket {\n" + perHour("r", "1", "key none\nmatch /api/*") + "}\n",
	} {
		config, err := adapt("http://a.example {\ntoken_bucket {\n" + perHour("r", "1", "key none") +
			"}\n}\nhttp://b.example {\n" + other + "}\n")
		if err != nil {
			t.Fatal(err)
		}
		err = (&server{t: t, log: t.TempDir() + "/log"}).run(config)
		if err == nil || !strings.Contains(err.Error(), `limiter "default": another handler has`) ||
			!strings.Contains(err.Error(), "another name, at Caddyfile:2, at Caddyfile:11") {
			t.Error(err)
		}
	}
}
