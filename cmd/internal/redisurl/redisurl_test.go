package redisurl

import (
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/daemon"
	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/redis"
)

func TestURLs(t *testing.T) {
	for _, tt := range []struct{ text, address, shown string }{
		{"localhost:6379", "localhost:6379", "localhost:6379"},
		{"redis://[::1]:1/2", "[::1]:1", "redis://[::1]:1/2"},
		{"rediss://u:secret@h:6380", "h:6380", "rediss://u:xxxxx@h:6380"},
		{"redis://a:1?addr=b:2", "a:1 b:2", "redis://a:1?addr=b:2"},
	} {
		var u URL
		if u.IsSet() {
			t.Error("the zero URL is set")
		}
		err := u.UnmarshalText([]byte(tt.text))
		got := strings.Join(u.option.InitAddress, " ")
		if err != nil || got != tt.address || u.String() != tt.shown || !u.IsSet() {
			t.Errorf("%s: %q, shown as %q, %v", tt.text, got, &u, err)
		}
	}
}

func TestPasswordFromTheEnvironment(t *testing.T) {
	server := redistest.Start(t, "--requirepass", "secret")
	for password, granted := range map[string]bool{"secret": true, "other": false} {
		t.Setenv(passwordVariable, password)
		var u URL
		if err := u.UnmarshalText([]byte(server.Addr)); err != nil {
			t.Fatal(err)
		}
		c, err := u.Dial()
		if c == nil || (err == nil) != granted {
			t.Errorf("password %q: client %v, error %v", password, c, err)
		}
		if c == nil {
			continue
		}
		defer c.Close()
		if err := c.Do(t.Context(), c.B().Ping().Build()).Error(); (err == nil) != granted {
			t.Errorf("password %q: %v", password, err)
		}
	}
}

// The servers of Sentinel have a user and a password of their own.
func TestSentinelFromTheEnvironment(t *testing.T) {
	t.Setenv(passwordVariable, "secret")
	t.Setenv(sentinelUserVariable, "watcher")
	t.Setenv(sentinelPasswordVariable, "other")
	var u URL
	if err := u.UnmarshalText([]byte("redis://a:1?addr=b:2&master_set=m")); err != nil {
		t.Fatal(err)
	}
	o := u.withSecrets()
	if o.Password != "secret" || o.Sentinel.Username != "watcher" || o.Sentinel.Password != "other" {
		t.Errorf("%+v", o)
	}
}

// The log of a process has the beginning and the end of an outage, also if the policy allows all
// calls meanwhile.
func TestOutagesAreLogged(t *testing.T) {
	server := redistest.Start(t)
	var u URL
	if err := u.UnmarshalText([]byte(server.Addr)); err != nil {
		t.Fatal(err)
	}
	log := testkit.NewTranscript()
	p := daemon.NewProcess(io.Discard, io.Discard, "text")
	defer p.Close()
	p.Log = log.Logger()
	store, err := u.Open(p, redis.WithPolicy(redis.Allow), redis.WithTimeout(200*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	limits := []tb.Limit{{Capacity: 1, Tokens: 1, Per: time.Hour}}
	limiters, err := store.Limiters("rule", limits)
	if err != nil {
		t.Fatal(err)
	}
	limiter := limiters[0].(*redis.Limiter)
	defer limiter.Close()
	for _, s := range []os.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		if err := server.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		for i := 0; len(log.Lines) == 0; i++ {
			if _, err := limiter.Allow(t.Context(), strconv.Itoa(i)); err != nil {
				t.Fatal(err)
			}
		}
		want := map[os.Signal]string{
			syscall.SIGSTOP: `level=WARN msg="tb/redis: the server does not decide" prefix=tb:rule: `,
			syscall.SIGCONT: `level=INFO msg="tb/redis: the server decides again" lasted=`,
		}
		if line := <-log.Lines; !strings.HasPrefix(line, want[s]) {
			t.Errorf("%v: %s", s, line)
		}
	}
}

func TestDialWithoutAServer(t *testing.T) {
	var u URL
	if err := u.UnmarshalText([]byte("127.0.0.1:1")); err != nil {
		t.Fatal(err)
	}
	c, err := u.Dial()
	if c == nil || err == nil || !strings.Contains(err.Error(), "--redis=127.0.0.1:1: ") {
		t.Fatalf("client %v, error %v", c, err)
	}
	c.Close()
}
