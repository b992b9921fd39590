package redis

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Close may come during all kinds of calls, on keys that have leases and on drained ones. No call
// panics or hangs, and after Close each call returns ErrClosed.
func TestCloseDuringAllCalls(t *testing.T) {
	s := redistest.Start(t)
	for seed, opts := range [][]Option{
		{WithLease(20 * time.Millisecond)},
		{WithLease(20 * time.Millisecond), WithPolicy(LocalShare(2)), WithTimeout(time.Millisecond)},
		{WithoutBatching(), WithPolicy(Allow)},
		{WithMaxDenial(0)},
	} {
		prefix := WithPrefix(strconv.Itoa(seed) + ":")
		l := newLimiter(t, dial(t, s), perSecond(500, 5000), append(opts, prefix)...)
		const callers = 16
		var wg, busy sync.WaitGroup
		busy.Add(callers)
		for i := range callers {
			rng := rand.New(rand.NewPCG(uint64(seed), uint64(i)))
			wg.Go(func() {
				for calls := 0; ; calls++ {
					if calls == 50 {
						busy.Done()
					}
					if err := anyCall(l, rng); errors.Is(err, ErrClosed) && calls >= 50 {
						return
					} else if err != nil && !errors.As(err, new(*Error)) {
						t.Error(err)
					}
				}
			})
		}
		busy.Wait()
		l.Close()
		rng := rand.New(rand.NewPCG(uint64(seed), callers))
		for range 50 {
			if err := anyCall(l, rng); !errors.Is(err, ErrClosed) {
				t.Errorf("after Close: %v", err)
			}
		}
		wg.Wait()
	}
}

// anyCall makes a random call, and may cancel it.
func anyCall(l *Limiter, rng *rand.Rand) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if rng.IntN(8) == 0 {
		go cancel()
	}
	key := strconv.Itoa(rng.IntN(3))
	switch rng.IntN(10) {
	case 0:
		return l.Reset(ctx, key)
	case 1:
		_, err := l.Level(ctx, key)
		return err
	case 2:
		_, err := l.AllowN(ctx, key, float64(1+rng.IntN(600)))
		return err
	case 3:
		a, err := l.Charge(key, 1)
		if err != nil {
			return err
		}
		b, err := l.Charge("another", 0.1)
		if err != nil {
			return err
		}
		_, ok, err := TakeAll(ctx, time.Now(), []tb.Charge{a, b}, nil)
		if ok {
			a.Cancel()
			b.Cancel()
		}
		return err
	case 4:
		c, err := l.Charge(key, 1)
		if err != nil {
			return err
		}
		_, err = c.Take(time.Now())
		c.Cancel()
		return err
	}
	_, err := l.Allow(ctx, key)
	return err
}
