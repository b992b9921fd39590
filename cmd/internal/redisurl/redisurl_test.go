package redisurl

import (
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
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
		t.Setenv("TB_REDIS_PASSWORD", password)
		var u URL
		if err := u.UnmarshalText([]byte(server.Addr)); err != nil {
			t.Fatal(err)
		}
		c, err := u.Dial()
		if c == nil || (err == nil) != granted {
			t.Fatalf("password %q: client %v, error %v", password, c, err)
		}
		if !granted && !strings.HasPrefix(err.Error(), "--redis="+server.Addr+": ") {
			t.Error(err)
		}
		defer c.Close()
		if err := c.Do(t.Context(), c.B().Ping().Build()).Error(); (err == nil) != granted {
			t.Errorf("password %q: %v", password, err)
		}
	}
}

// The servers of Sentinel have a user and a password of their own.
func TestSentinelFromTheEnvironment(t *testing.T) {
	t.Setenv("TB_REDIS_PASSWORD", "secret")
	t.Setenv("TB_REDIS_SENTINEL_USER", "watcher")
	t.Setenv("TB_REDIS_SENTINEL_PASSWORD", "other")
	var u URL
	if err := u.UnmarshalText([]byte("redis://a:1?addr=b:2&master_set=m")); err != nil {
		t.Fatal(err)
	}
	o := u.withSecrets()
	if o.Password != "secret" || o.Sentinel.Username != "watcher" || o.Sentinel.Password != "other" {
		t.Errorf("%+v", o)
	}
}
