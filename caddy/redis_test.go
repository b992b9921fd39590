package tokenbucket

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
)

// inRedis is a site whose limiter has its buckets in a server.
func inRedis(address, options, rules string) string {
	return site("api", "redis "+address+" {\ntimeout 5s\n"+options+"\n}\n"+rules)
}

func TestBucketsInRedisOutliveTheProcess(t *testing.T) {
	address := redistest.Start(t).Addr
	t.Setenv("TB_TEST_REDIS", "redis://"+address+"/3")
	rules := perHour("r", "2", "key {client_ip}") + perHour("keys", "3", "key {header.X-Api-Key}")
	s := start(t, inRedis("{env.TB_TEST_REDIS}", "", rules))
	s.want(200, "X-Api-Key: k")
	s = start(t, inRedis("{env.TB_TEST_REDIS}", "", rules)) // another limiter
	s.want(200, "X-Api-Key: k")
	s.want(429, "X-Api-Key: k").fields(t, "RateLimit-Remaining: 0")
	rules = perHour("r", "5", "key {client_ip}")
	if err := s.load(inRedis("{env.TB_TEST_REDIS}", "", rules)); err != nil {
		t.Fatal(err)
	}
	s.want(429) // the bucket keeps its tokens, and has none
	all := names(t)
	if !slices.Contains(all, "tb_redis_decisions_total") {
		t.Errorf("no metrics of Redis in %v", all)
	}
	const states = "0 is closed (it does), 1 open, 2 recovering."
	contains(t, `
# HELP tb_redis_breaker_state Whether the limiter asks the server: `+states+`
# TYPE tb_redis_breaker_state gauge
tb_redis_breaker_state{limiter="api",rule="r"} 0
`, "tb_redis_breaker_state") // and no rule of before
}

// A file with a secret may change, although the configuration does not.
func TestAReloadReadsTheAddressOfRedis(t *testing.T) {
	file := filepath.Join(t.TempDir(), "address")
	write := func(address string) {
		if err := os.WriteFile(file, []byte(address), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config := inRedis("{file."+file+"}", "", perHour("r", "1", "key none"))
	write(redistest.Start(t).Addr)
	s := start(t, config)
	s.want(200)
	s.want(429)
	write(redistest.Start(t).Addr)
	if err := s.load(config); err != nil {
		t.Fatal(err)
	}
	s.want(200)
	s.want(429)
}

func TestRequestsWithoutRedis(t *testing.T) {
	server := redistest.Start(t)
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for options, want := range map[string]int{"": 200, "on_failure refuse": 503} {
		s := start(t, inRedis(server.Addr, options, perHour("r", "1", "key none")))
		for range 3 {
			s.want(want)
		}
		if len(s.logged("limiter api: rule r could not decide")) == 0 {
			t.Error("the log does not have the failure")
		}
	}
}

// A reload does not wait for the requests of the configuration before. Their buckets stay in Redis,
// although the limiter has ended.
func TestRequestsThatAReloadOvertakes(t *testing.T) {
	s := start(t, inRedis(redistest.Start(t).Addr, "", perHour("r", "1", "key {http.request.body}")))
	var waiting []*bufio.ReadWriter
	for range 2 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		c := bufio.NewReadWriter(bufio.NewReader(conn), bufio.NewWriter(conn))
		fmt.Fprint(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n")
		c.Flush()
		for line := ""; line != "\r\n"; { // the rule reads the body
			if line, err = c.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		waiting = append(waiting, c)
	}
	if err := s.load("http://:80 {\nrespond ok\n}"); err != nil {
		t.Fatal(err)
	}
	for i, c := range waiting {
		fmt.Fprint(c, "k")
		c.Flush()
		w, err := http.ReadResponse(c.Reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = w.Body.Close()
		if want := []int{200, 429}[i]; w.StatusCode != want {
			t.Errorf("status %d, want %d", w.StatusCode, want)
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
	if err := s.load(site("", perHour("r", "1", "key none"))); err != nil {
		t.Fatal(err)
	}
	for connections() != own {
		runtime.GC()
	}
}

// Placeholders are about refusals, and 503 is one.
func TestPlaceholdersWithoutRedis(t *testing.T) {
	server := redistest.Start(t)
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for options, want := range map[string]string{"": "null", "on_failure refuse": `"r"`} {
		s := start(t, "http://:80 {\nlog\nlog_append seen {http.token_bucket.rule}\ntoken_bucket {\n"+
			"redis "+server.Addr+" {\n"+options+"\n}\n"+perHour("r", "1", "key {client_ip}")+
			"}\nrespond ok\nhandle_errors {\n"+
			"respond \"{http.token_bucket.key} {http.token_bucket.retry_after}\"\n}\n}")
		w := s.get()
		if len(s.logged(`"seen":`+want)) != 1 {
			t.Errorf("the rule in the access log is not %s: %q", want, s.logged("seen"))
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
	names(t) // fails if two limiters have the same labels
}

func TestConfigurationsOfRedisWithErrors(t *testing.T) {
	address := redistest.Start(t).Addr
	for _, c := range []struct{ config, want string }{
		{inRedis("ftp://"+address, "", perHour("r", "1", "key none")), `redis: "ftp://`},
		{inRedis("{env.TB_TEST_UNSET}", "", perHour("r", "1", "key none")), "address"},
		{inRedis("redis://:secret@:0", "", perHour("r", "1", "key none")), "want host:port or"},
		{inRedis(address, "on_failure maybe", perHour("r", "1", "key none")), `on_failure is "maybe"`},
	} {
		s := &server{t: t, log: t.TempDir() + "/log"}
		err := s.load(c.config)
		if err == nil || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("the error is %v, want %s", err, c.want)
		}
	}
}
