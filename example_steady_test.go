package ratelimit_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-181794aa/ratelimit"
)

// gateway admits bursts of each client and passes them on at a steady rate, because the upstream
// behind it cannot take bursts.
type gateway struct {
	clients  *ratelimit.TokenBucket // a burst for each client
	upstream *ratelimit.Bucket      // capacity 1: calls are exactly one token's time apart
}

func newGateway(burst int, perSecond int64) (*gateway, error) {
	steady := ratelimit.Limit{Capacity: 1, Tokens: perSecond, Per: time.Second}
	upstream, err := ratelimit.NewBucket(steady)
	if err != nil {
		return nil, err
	}
	return &gateway{ratelimit.NewTokenBucket(burst, 0.001), upstream}, nil
}

// pass calls the upstream when its turn has come. It reports whether the client may send at all.
func (g *gateway) pass(ctx context.Context, client string, call func()) (bool, error) {
	d, err := g.clients.Allow(ctx, client)
	if err != nil || !d.Allowed {
		return false, err
	}
	if err := g.upstream.Wait(ctx, 1); err != nil {
		return false, err
	}
	call()
	return true, nil
}

// Two buckets in a row: the outer one admits a burst, and the inner one makes it steady for an
// upstream that cannot take bursts.
func Example_burstOutsideSteadyInside() {
	g, err := newGateway(3, 1000)
	if err != nil {
		panic(err)
	}
	for i := range 5 {
		passed, err := g.pass(ctx, "ada", func() { fmt.Println("call", i) })
		if err != nil {
			panic(err)
		}
		if !passed {
			fmt.Println("refused", i)
		}
	}
	// Output:
	// call 0
	// call 1
	// call 2
	// refused 3
	// refused 4
}

func TestGatewayCallsAreSteady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := newGateway(20, 8)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		var mu sync.Mutex
		var calls []time.Duration
		call := func() {
			mu.Lock()
			defer mu.Unlock()
			calls = append(calls, time.Since(began))
		}
		var wg sync.WaitGroup
		for _, client := range []string{"ada", "grace"} {
			for range 30 {
				wg.Go(func() {
					if _, err := g.pass(t.Context(), client, call); err != nil {
						t.Error(err)
					}
				})
			}
		}
		wg.Wait()
		var want []time.Duration
		for i := range 40 { // the bursts of both clients
			want = append(want, time.Duration(i)*time.Second/8)
		}
		if !slices.Equal(calls, want) {
			t.Errorf("calls at %v, want %v", calls, want)
		}
	})
}
