package redis

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
)

// TestRights requires that the user of docs/redis.md has all rights that a limiter needs, and no
// others.
func TestRights(t *testing.T) {
	document, err := os.ReadFile("../../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	rule := strings.Fields(string(regexp.MustCompile("(?m)^ACL SETUSER .*$").Find(document)))
	server := redistest.Start(t)
	admin := dial(t, server)
	commands := 0
	for i, word := range rule {
		if !strings.HasPrefix(word, "+") {
			continue
		}
		commands++
		rights := append(append([]string{}, rule[:i]...), rule[i+1:]...)
		do(t, admin, rights...)
		if err := useAll(t, server); err == nil {
			t.Errorf("a limiter works without %s", word)
		}
		do(t, admin, "ACL", "DELUSER", "limiter")
	}
	if commands != 6 {
		t.Errorf("%d commands in %q, want 6", commands, rule)
	}
	do(t, admin, rule...)
	if err := useAll(t, server); err != nil {
		t.Errorf("with all rights: %v", err)
	}
}

// useAll makes each kind of call as the user of the document, on a server without scripts.
func useAll(t *testing.T, server *redistest.Server) error {
	t.Helper()
	c, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{server.Addr}, DisableCache: true, ForceSingleClient: true,
		Username: "limiter", Password: "secret",
	})
	if err != nil {
		return err
	}
	defer c.Close()
	admin := dial(t, server)
	do(t, admin, "SCRIPT", "FLUSH")
	l := newLimiter(t, c, perSecond(1, 1))
	for range 2 {
		if _, err := l.Allow(t.Context(), "k"); err != nil {
			return err
		}
		if _, err := l.Peek(t.Context(), "k"); err != nil {
			return err
		}
	}
	return l.Reset(t.Context(), "k")
}
