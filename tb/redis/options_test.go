package redis

import (
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
)

func TestNamesOfKeys(t *testing.T) {
	first := func(key string) string { first, _, _ := strings.Cut(key, "/"); return first }
	for _, tt := range []struct {
		opts      []Option
		key, want string
	}{
		{nil, "a", "tb:{a}"},
		{nil, "", "tb:{}"},
		{nil, "a}b", "tb:{a}b}"},
		{[]Option{WithPrefix("")}, "a", "{a}"},
		{[]Option{WithPrefix("login:")}, "a", "login:{a}"},
		{[]Option{WithTag(first)}, "tenant/user", "tb:{tenant}tenant/user"},
		{[]Option{WithTag(first)}, "a}b/c", "tb:{a}a}b/c"},
		{[]Option{WithTag(func(string) string { return "" })}, "a", "tb:{}a"},
	} {
		s, err := apply(tt.opts)
		if got := s.name(tt.key); err != nil || got != tt.want {
			t.Errorf("key %q is %q, %v, want %q", tt.key, got, err, tt.want)
		}
	}
}

// The clock of the client decides, and the server is not asked for its own.
func TestClientClock(t *testing.T) {
	c := dial(t, redistest.Start(t))
	do(t, c, "ACL", "SETUSER", "default", "-time")
	l := newLimiter(t, c, slow, WithClientClock())
	for i := range 10 {
		if d, err := l.Allow(t.Context(), "a"); err != nil || d != granted(9-i) {
			t.Fatalf("call %d: %+v, %v", i, d, err)
		}
	}
	if d, err := l.Allow(t.Context(), "a"); err != nil || d.Allowed {
		t.Errorf("call 11: %+v, %v", d, err)
	}
	ttl := do(t, c, "PTTL", "tb:{a}")
	if ms, err := ttl.AsInt64(); err != nil || ms > 10*86_400_000+1001 || ms < 10*86_400_000-60_000 {
		t.Errorf("the key expires in %d ms, %v, want 10 days", ms, err)
	}
	if s := l.Stats(); s.Trips != 11 || s.RefusedLocally != 1 || s.Loaded != 1 || s.Stale != 0 ||
		s.Offset != 0 {
		t.Errorf("Stats: %+v", s)
	}
}
