package redis

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
)

func TestParseAddress(t *testing.T) {
	for _, c := range []struct {
		text, address string
		single        bool
		timeout       time.Duration
	}{
		{"localhost:6379", "localhost:6379", true, time.Second},
		{"[::1]:1", "[::1]:1", true, time.Second},
		{"redis://localhost", "localhost:6379", true, time.Second},
		{"redis://localhost/?db=2", "localhost:6379", true, time.Second},
		{"redis://[::1]:1/2?write_timeout=3s", "[::1]:1", true, 3 * time.Second},
		{"rediss://u:secret@h:6380", "h:6380", true, time.Second},
		{"redis://a:1?addr=b:2", "a:1 b:2", false, time.Second},
		{"redis://a:1?addr=b:2&master_set=m", "a:1 b:2", false, time.Second},
		{"rediss://a:1?master_set=m", "a:1", false, time.Second},
		{"unix:///run/redis@1.sock", "/run/redis@1.sock", true, time.Second},
	} {
		o, err := ParseAddress(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		got := strings.Join(o.InitAddress, " ")
		if got != c.address || o.ForceSingleClient != c.single || o.ConnWriteTimeout != c.timeout ||
			!o.DisableCache || (o.TLSConfig != nil) != strings.HasPrefix(c.text, "rediss:") ||
			o.Sentinel.TLSConfig != o.TLSConfig || o.Sentinel.Dialer.Timeout == 0 ||
			o.Sentinel.TopologyRefreshInterval == 0 ||
			o.Sentinel.Dialer.KeepAlive == 0 || o.ClusterOption.MaxMovedRedirections == 0 {
			t.Errorf("%s: %q, %+v", c.text, got, o)
		}
	}
	const ports = "want a host and a port from 1 to 65535, also in each addr"
	for text, want := range map[string]string{
		"":                              "want host:port or a URL",
		":6379":                         "want host:port or a URL",
		"localhost":                     "want host:port or a URL",
		"http://h":                      "want host:port or a URL",
		"redis://u:secret@h/x":          "want host:port or a URL",
		"redis://u:secret@":             "want host:port or a URL",
		"u:secret@h":                    "want host:port or a URL",
		"redis://u:secret@h:port":       "want host:port or a URL",
		"redis://u:sec%ret@h:1":         "want host:port or a URL",
		"rediss://u:secret@h?cert=c":    "cert, key: want both",
		"redis://h?cert=c&key=k":        "rediss:",
		"rediss://h?cert=none&key=none": "open none:",
		"h:99999":                       "; ports are 1 to 65535",
		"redis://u:secret@h:0":          ports,
		"redis://a?addr=b":              ports,
		"redis://a:1,b:2?addr=c:3":      ports,
		"unix://":                       "want the path of one socket, such as unix:///",
		"unix://run/redis.sock":         "want the path of one socket",
		"unix:///s?addr=a:1":            "want the path of one socket",
		"redis://h/-1":                  "database: want 0 or more",
		"redis://h?dial_timeout=0s":     "dial_timeout, write_timeout: want more than 0",
		"redis://h?write_timeout=0":     "dial_timeout, write_timeout: want more than 0",
		"redis://h?write_timeout=5":     `invalid write timeout: "5"; want host:port or a URL`,
		"redis://u:secret@h/0?pass=sec": `"redis://h/0": parameter "pass": want one of [addr cert`,
		"redis://h?db=1;typo":           "invalid semicolon",
		"redis://h?protocol=resp2":      "protocol: want 2 or 3",
		"redis://u:12/sec@h":            "in a password / # ? % are %2F",
		"redis://u:12?sec@h":            "in a password",
		"redis://u:12#sec@h":            "in a password",
	} {
		_, err := ParseAddress(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sec") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A process connects before its first calls, and each of them is one command: also the one that
// brings the script, and learns the server's clock.
func TestFirstCallsAreOneTrip(t *testing.T) {
	s := redistest.Start(t)
	o, err := ParseAddress(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	operator := dial(t, s)
	before := connections(t, operator)
	l := newLimiter(t, c, slow)
	decide(t, l, "first", ByServer)
	if s := l.Stats(); s.Commands != 1 {
		t.Errorf("Stats: %+v", s)
	}
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() { decide(t, l, strconv.Itoa(i), ByServer) })
	}
	all.Wait()
	if n := connections(t, operator) - before; n > 0 {
		t.Errorf("%d connections in the time of calls", n)
	}
}
