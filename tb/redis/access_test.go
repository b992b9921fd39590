package redis

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb"
)

// rights are the least rights of a limiter with the default prefix, as docs/redis.md has them.
const rights = "resetchannels ~tb:* -@all +evalsha +eval +time +get +set +pttl +del"

func useAll(t *testing.T, l *Limiter) {
	t.Helper()
	ctx := t.Context()
	wantTake(t, l, "a", 1, granted(9))
	if _, err := l.Peek(ctx, "a"); err != nil {
		t.Error(err)
	}
	charges := []tb.Charge{newCharge(t, l, "a", 1), newCharge(t, l, "b", 1)}
	if _, ok, err := TakeAll(ctx, time.Now(), charges, nil); !ok || err != nil {
		t.Errorf("TakeAll: %t, %v", ok, err)
	}
	charges[0].Cancel()
	if d, err := l.Peek(ctx, "a"); err != nil || d != granted(8) {
		t.Errorf("Peek: %+v, %v", d, err)
	}
	if err := errors.Join(l.Hold(ctx, "a", time.Now().Add(time.Hour)), l.Reset(ctx, "a")); err != nil {
		t.Error(err)
	}
	if s := l.Stats(); len(s.Failed) > 0 {
		t.Errorf("failed: %v", s.Failed)
	}
}

func TestLeastRights(t *testing.T) {
	doc, err := os.ReadFile("../../docs/redis.md")
	if err != nil || !strings.Contains(string(doc), rights) {
		t.Errorf("docs/redis.md does not have the rights %q, %v", rights, err)
	}
	t.Run("one server", func(t *testing.T) {
		c := login(t, redistest.Start(t), "", true)
		useAll(t, newLimiter(t, c, slow))
		l := newLimiter(t, c, slow, WithPrefix("other:"))
		wantCause(t, failure(t.Context(), t, l, "a"), CauseForbidden)
	})
	for _, right := range strings.Fields(rights) {
		if !strings.HasPrefix(right, "+") {
			continue
		}
		t.Run("without "+right, func(t *testing.T) {
			c := login(t, redistest.Start(t), " -"+right[1:], true)
			l := newLimiter(t, c, slow, WithPolicy(Fail))
			switch right { // a value that cannot be read, or that a reset leaves, is not a full bucket
			case "+get":
				_, err := l.Level(t.Context(), "a")
				wantCause(t, err, CauseForbidden)
				c := newCharge(t, l, "a", 5).(*Charge)
				c.taken.Store(true)
				wantCause(t, c.Settle(1), CauseForbidden)
			case "+del":
				do(t, c, "SET", "tb:{other}", "a value")
				wantCause(t, l.Reset(t.Context(), "other"), CauseForbidden)
			}
			_, first := l.Allow(t.Context(), "a")
			_ = l.SetLimit(perSecond(5, 1))
			_, second := l.Allow(t.Context(), "a")
			wantCause(t, errors.Join(first, second, l.Reset(t.Context(), "a")), CauseForbidden)
		})
	}
}

func TestRecipeShowsABucket(t *testing.T) {
	doc, err := os.ReadFile("../../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(doc), `redis-cli EVAL "`)
	recipe, _, found := strings.Cut(rest, `" 1 'tb:{203.0.113.195}'`)
	if !found {
		t.Fatal("docs/redis.md has no recipe")
	}
	c := dial(t, redistest.Start(t))
	l := newLimiter(t, c, tb.Limit{Capacity: 10, Tokens: 5, Per: 1000 * time.Second})
	for _, want := range []string{"full", "6.000000 tokens of 10, 0.005 a second, 0."} {
		if got := text(t, c, "EVAL", recipe, "1", "tb:{203.0.113.195}"); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		if _, err := l.AllowN(t.Context(), "203.0.113.195", 4); err != nil {
			t.Fatal(err)
		}
	}
}

func login(t *testing.T, s *redistest.Server, more string, single bool) rueidis.Client {
	t.Helper()
	set := "ACL SETUSER limiter on >secret " + rights + more
	do(t, dialOption(t, rueidis.ClientOption{
		InitAddress: []string{s.Addr}, DisableCache: true, ForceSingleClient: true,
	}), strings.Fields(set)...)
	return dialOption(t, rueidis.ClientOption{
		InitAddress: []string{s.Addr}, DisableCache: true, ForceSingleClient: single,
		Username: "limiter", Password: "secret",
	})
}

// clusterRights are the rights that the client of a cluster needs beyond rights.
const clusterRights = " +cluster|slots +cluster|shards +asking"
