package tokenbucket

import (
	"io"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
)

// inRedis is a site whose limiter has its buckets in a server.
func inRedis(address, options, rules string) string {
	return site("api", "redis "+address+" {\ntimeout 5s\n"+options+"\n}\n"+rules)
}

// A file with a secret may change, although the configuration does not. Buckets outlive a limiter.
func TestAReloadReadsTheAddressOfRedis(t *testing.T) {
	file := filepath.Join(t.TempDir(), "address")
	config := inRedis("{file."+file+"}", "", perHour("r", "1", "key none"))
	first, second := redistest.Start(t).Addr, redistest.Start(t).Addr
	s := start(t, site("", perHour("r", "1", "key none")))
	for _, c := range []struct {
		address  string
		statuses []int
	}{{first, []int{200, 429}}, {"redis://" + second + "/3", []int{200, 429}}, {first, []int{429}}} {
		writeFile(t, file, c.address)
		s.load(config)
		for _, status := range c.statuses {
			s.want(status)
		}
	}
	const states = "0 is closed (it does), 1 open, 2 recovering."
	want := `
# HELP tb_redis_breaker_state Whether the limiter asks the server: ` + states + `
# TYPE tb_redis_breaker_state gauge
tb_redis_breaker_state{limiter="api"} 0
` // and no limiter of before
	err := testutil.GatherAndCompare(registry(), strings.NewReader(want), "tb_redis_breaker_state")
	if err != nil {
		t.Error(err)
	}
}

// A reload does not wait for the requests of the configuration before. Their buckets stay in Redis,
// although the limiter has ended.
func TestRequestsThatAReloadOvertakes(t *testing.T) {
	s := start(t, inRedis(redistest.Start(t).Addr, "", perHour("r", "1", "key {http.request.body}")))
	s.client.Transport = &http.Transport{ExpectContinueTimeout: time.Hour}
	var bodies []*io.PipeWriter
	statuses := make(chan int)
	for range 2 {
		body, pipe := io.Pipe()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url, body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Expect", "100-continue")
		go func() {
			w, err := s.client.Do(r)
			if err != nil {
				t.Error(err)
				w = &http.Response{Body: http.NoBody}
			}
			_ = w.Body.Close()
			statuses <- w.StatusCode
		}()
		_, _ = pipe.Write([]byte("k")) // the rule reads the body
		bodies = append(bodies, pipe)
	}
	s.load("http://:80 {\nrespond ok\n}")
	for i, body := range bodies {
		_ = body.Close()
		if status, want := <-statuses, []int{200, 429}[i]; status != want {
			t.Errorf("status %d, want %d", status, want)
		}
	}
}

// The test waits for a garbage collection, which closes the client.
func TestAClientOfRedisIsClosed(t *testing.T) {
	address := redistest.Start(t).Addr
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{address}, DisableCache: true, ForceSingleClient: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	connections := func() int {
		list, err := client.Do(t.Context(), client.B().ClientList().Build()).ToString()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(list, "\n")
	}
	own := connections()
	s := start(t, inRedis(address, "", perHour("r", "1", "key none")))
	s.want(200)
	s.load(site("", perHour("r", "1", "key none")))
	for connections() != own {
		runtime.GC()
	}
}

// A request that Redis does not decide is granted, or refused with 503. Placeholders are about
// refusals.
func TestRequestsWithoutRedis(t *testing.T) {
	server := redistest.Start(t)
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for options, want := range map[string]struct {
		status int
		rule   string
	}{"": {200, "null"}, "on_failure refuse": {503, `"r"`}} {
		s := start(t, "http://:80 {\nlog\nlog_append seen {http.token_bucket.rule}\ntoken_bucket {\n"+
			"redis "+server.Addr+" {\n"+options+"\n}\n"+perHour("r", "1", "key {client_ip}")+
			"}\nrespond ok\nhandle_errors {\n"+
			"respond \"{http.token_bucket.key} {http.token_bucket.retry_after}\"\n}\n}")
		w := s.want(want.status)
		if len(s.logged(`"seen":`+want.rule)) != 1 {
			t.Errorf("the rule in the access log is not %s: %q", want.rule, s.logged("seen"))
		}
		lines := s.logged("the server does not decide")
		if len(lines) != 1 || !strings.Contains(lines[0], `"level":"warn"`) ||
			!strings.Contains(lines[0], `"limiter":"default","prefix":"caddy:default:r:`) {
			t.Errorf("the log does not have the outage: %q", lines)
		}
		body := "ip:address=127.0.0.1 " + w.Header.Get("Retry-After")
		if options != "" && w.body != body {
			t.Errorf("the body is %s, want %s", w.body, body)
		}
	}
}

func TestSlashesInNamesKeepMetricsApart(t *testing.T) {
	address := redistest.Start(t).Addr
	directive := func(name, rule string) string {
		return "token_bucket " + name + " {\nredis " + address + "\n" +
			perHour(rule, "9", "key none") + "}\n"
	}
	s := start(t, "http://:80 {\n"+directive("a", "b/c")+directive("a/b", "c")+"respond ok\n}")
	s.want(200)
	if _, err := registry().Gather(); err != nil {
		t.Error(err)
	}
}

// registry is the one that the admin API of Caddy serves.
func registry() *prometheus.Registry {
	ctx := caddy.ActiveContext()
	return ctx.GetMetricsRegistry()
}
