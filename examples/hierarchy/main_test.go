package main

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit"
)

func TestRefusalNamesTheLevelThatBinds(t *testing.T) {
	var got strings.Builder
	if err := run(&got); err != nil {
		t.Fatal(err)
	}
	const want = `
0s    ada of acme to 10: granted, 0 left for the user
0s    ada of acme to 1: refused by the user for 1s
0s    bob of acme to 10: granted, 0 left for the user
0s    cy of acme to 10: refused by the tenant for 1s
0s    ada of beta to 10: granted, 0 left for the user
0s    bob of beta to 4: granted, 1 left for the relay
0s    cy of beta to 6: refused by the relay for 500ms
500ms cy of beta to 6: granted, 0 left for the relay
`
	if "\n"+got.String() != want {
		t.Errorf("got\n%swant%s", &got, want)
	}
}

func TestBindingIsTheLongestWaitThenTheFewestTokens(t *testing.T) {
	granted := func(left int) ratelimit.Decision {
		return ratelimit.Decision{Allowed: true, Remaining: left}
	}
	refused := func(wait time.Duration) ratelimit.Decision {
		return ratelimit.Decision{RetryAfter: wait}
	}
	for _, tt := range []struct {
		decisions []ratelimit.Decision
		want      int
	}{
		{[]ratelimit.Decision{granted(1)}, 0},
		{[]ratelimit.Decision{granted(3), granted(2), granted(4)}, 1},
		{[]ratelimit.Decision{granted(2), granted(2)}, 0},
		{[]ratelimit.Decision{granted(0), refused(1), granted(0)}, 1},
		{[]ratelimit.Decision{refused(2), refused(1), refused(3)}, 2},
		{[]ratelimit.Decision{refused(time.Hour), refused(ratelimit.Never)}, 1},
	} {
		if got := binding(tt.decisions); got != tt.want {
			t.Errorf("binding(%+v) = %d, want %d", tt.decisions, got, tt.want)
		}
	}
}

func TestInvalidCostIsAnError(t *testing.T) {
	q, err := newQuota(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := q.take(sender{"acme", "ada"}, 0); !errors.Is(err, ratelimit.ErrInvalidCost) {
		t.Errorf("got %v, want ErrInvalidCost", err)
	}
}

// The clock stands still, so the tenant's bucket bounds the grants of its users together.
func TestConcurrentUsersShareTheirTenant(t *testing.T) {
	now := time.Now()
	q, err := newQuota(func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	var granted atomic.Int64
	var all sync.WaitGroup
	for _, user := range []string{"ada", "bob", "cy", "dan"} {
		all.Go(func() {
			for range 100 {
				_, d, err := q.take(sender{"acme", user}, 1)
				if err != nil {
					t.Error(err)
				} else if d.Allowed {
					granted.Add(1)
				}
			}
		})
	}
	all.Wait()
	if n := granted.Load(); n != 25 {
		t.Errorf("%d granted, want 25", n)
	}
}
