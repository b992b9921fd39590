package redis

import (
	"context"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/seed-181794aa/ratelimit/tb"
)

// The races of TestOverGrant depend on the machine. Here callers of one bucket proceed in step:
// each reads the bucket before any caller writes it.

// callers is more than the attempts of a call of watch, and than a bucket holds.
const callers = attempts + 12

// TestMultiCmdOverGrants requires that all callers that read the same full bucket are granted.
func TestMultiCmdOverGrants(t *testing.T) {
	sum := inStep(t, multiCmd)
	if sum.Granted != callers || sum.Failed > 0 {
		t.Errorf("%d of %d calls granted, %d failed (%s); want all granted",
			sum.Granted, callers, sum.Failed, sum.Error)
	}
}

// TestWatchCollapses requires that in each attempt one of the callers decides. The others give up
// after their last attempt, also those that would be refused.
func TestWatchCollapses(t *testing.T) {
	sum := inStep(t, watch)
	if sum.Granted != burst || sum.Failed != callers-attempts || sum.Error != errAttempts.Error() {
		t.Errorf("%d granted, %d failed (%s); want %d and %d (%v)",
			sum.Granted, sum.Failed, sum.Error, burst, callers-attempts, errAttempts)
	}
}

// inStep returns the results of one call of each caller on a bucket that is not refilled.
func inStep(t *testing.T, over func(*goredis.Client, tb.Limit) (allow, error)) (sum tally) {
	client := goredis.NewClient(&goredis.Options{Addr: startServer(t).addr, PoolSize: callers})
	step := &barrier{parties: callers, open: make(chan struct{})}
	client.AddHook(step)
	defer client.Close()
	allow, err := over(client, tb.Limit{Capacity: burst, Tokens: 1, Per: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			var mine tally
			mine.call(context.Background(), Limiter{Allow: allow}, "key")
			step.leave()
			mu.Lock()
			defer mu.Unlock()
			sum.add(mine)
		})
	}
	all.Wait()
	return sum
}

// barrier is a hook that holds each read of a bucket until all parties have read it.
type barrier struct {
	mu               sync.Mutex
	parties, waiting int
	open             chan struct{} // closed when all parties wait
}

func (b *barrier) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		err := next(ctx, cmd)
		if cmd.Name() == "hmget" {
			b.wait()
		}
		return err
	}
}

func (b *barrier) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (b *barrier) ProcessPipelineHook(
	next goredis.ProcessPipelineHook,
) goredis.ProcessPipelineHook {
	return next
}

func (b *barrier) wait() {
	b.mu.Lock()
	open := b.open
	b.waiting++
	b.release()
	b.mu.Unlock()
	<-open
}

// leave reduces the number of parties.
func (b *barrier) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.parties--
	b.release()
}

func (b *barrier) release() {
	if b.waiting == b.parties {
		close(b.open)
		b.waiting, b.open = 0, make(chan struct{})
	}
}
