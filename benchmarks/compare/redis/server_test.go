package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
)

// server is a redis-server without persistence, for one test or benchmark.
type server struct {
	addr   string
	client *goredis.Client // for questions about the server
}

// startServer starts a redis-server on a free port.
func startServer(tb testing.TB) *server {
	tb.Helper()
	s := &server{addr: redistest.Start(tb).Addr}
	s.client = goredis.NewClient(&goredis.Options{Addr: s.addr})
	tb.Cleanup(func() { _ = s.client.Close() })
	return s
}

// do sends a command and fails the test if it fails.
func (s *server) do(tb testing.TB, args ...any) any {
	tb.Helper()
	reply, err := s.client.Do(context.Background(), args...).Result()
	if err != nil {
		tb.Fatalf("%v: %v", args, err)
	}
	return reply
}

// now returns the server's time.
func (s *server) now(tb testing.TB) time.Time {
	tb.Helper()
	t, err := s.client.Time(context.Background()).Result()
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

// empty removes all keys and counts from zero.
func (s *server) empty(tb testing.TB) {
	tb.Helper()
	s.do(tb, "FLUSHALL", "SYNC") // Valkey flushes in the background by default
	s.do(tb, "CONFIG", "RESETSTAT")
}

// info returns the fields of a section of INFO.
func (s *server) info(tb testing.TB, section string) map[string]string {
	tb.Helper()
	text := s.do(tb, "INFO", section).(string)
	fields := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// usage is what the round trips of a contender took, since the server counts from zero.
type usage struct {
	trips  int
	inside time.Duration // in the server's commands, without its reads and writes
}

func (s *server) usage(tb testing.TB, c Contender) (u usage) {
	tb.Helper()
	stats := s.info(tb, "commandstats")
	count := func(command string) (calls int) {
		var microseconds int
		value, ok := stats["cmdstat_"+command]
		if !ok {
			return 0
		}
		if _, err := fmt.Sscanf(value, "calls=%d,usec=%d", &calls, &microseconds); err != nil {
			tb.Fatalf("%s: %q: %v", command, value, err)
		}
		u.inside += time.Duration(microseconds) * time.Microsecond
		return calls
	}
	for _, command := range c.Trips {
		u.trips += count(command)
	}
	for _, command := range c.Riders {
		count(command)
	}
	return u
}

// memory returns the bytes that the server has allocated.
func (s *server) memory(tb testing.TB) int {
	tb.Helper()
	n, err := strconv.Atoi(s.info(tb, "memory")["used_memory"])
	if err != nil {
		tb.Fatal(err)
	}
	return n
}
