package peers

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"

	"github.com/seed-181794aa/ratelimit/tb"
)

// TestContract compares what the limiters do with what the table says of them.
func TestContract(t *testing.T) {
	for _, s := range subjects {
		for _, p := range properties {
			t.Run(s.name+"/"+p.name, func(t *testing.T) {
				c := expected[s.name][p.name]
				if c.applies() && !c.alone {
					bubble(t, func(t *testing.T, w *world) {
						failure := p.check(w, s)
						if kept := failure == ""; kept != (c.verdict == "") {
							t.Errorf("expected %q, got %q", c.verdict, failure)
						}
					})
				}
				if c.script != nil {
					c.script.test(t, s, strings.HasPrefix(p.name, "C1"))
				}
			})
		}
	}
}

// applies says whether the column means something for the limiter.
func (c cell) applies() bool {
	return c.verdict == "" || c.verdict == breaks || c.verdict == noClaim
}

// test fails unless every answer is as written, and, if the script is about the bound,
// the answers exceed it.
func (sc script) test(t *testing.T, s subject, bound bool) {
	if !sc.fits() {
		t.Skip("an int has 32 bits")
	}
	bubble(t, func(t *testing.T, w *world) {
		wrong, over := sc.play(w, s)
		if wrong != "" {
			t.Errorf("no longer so: %s", wrong)
		}
		if bound && over < quantum {
			t.Errorf("the script stays within the bound (%v)", over)
		}
	})
}

// overtakenStore lets a call of another caller go first whenever one is about to store
// its decision.
type overtakenStore struct {
	throttled.GCRAStoreCtx
	other func()
}

func (o *overtakenStore) CompareAndSwapWithTTL(
	ctx context.Context, key string, old, new int64, ttl time.Duration,
) (bool, error) {
	o.other()
	return o.GCRAStoreCtx.CompareAndSwapWithTTL(ctx, key, old, new, ttl)
}

// TestThrottledGivesUp checks what the document says of its lost races.
func TestThrottledGivesUp(t *testing.T) {
	ctx := context.Background()
	store := must(memstore.NewCtx(1))
	limit := tb.Limit{Capacity: 100, Tokens: 1, Per: time.Hour}
	others, grants := newThrottled(limit, store), 0
	l := newThrottled(limit, &overtakenStore{store, func() {
		if limited, _, err := others.RateLimitCtx(ctx, "a", 1); err == nil && !limited {
			grants++
		}
	}})
	if _, _, err := l.RateLimitCtx(ctx, "a", 1); err != nil {
		t.Fatal(err) // the key is new, and there is nothing to compare with
	}
	if _, _, err := l.RateLimitCtx(ctx, "a", 1); err == nil || grants != 10 {
		t.Errorf("overtaken by %d grants: error %v, want one after 10", grants, err)
	}
}
