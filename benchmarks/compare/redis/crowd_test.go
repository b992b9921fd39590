package redis

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// tally counts the results of calls.
type tally struct {
	Calls, Granted int
	Late           int    // calls that were granted, but after whose deadline the reply came
	Failed         int    // calls that returned an error
	Error          string // the first one
}

func (t *tally) add(other tally) {
	t.Calls += other.Calls
	t.Granted += other.Granted
	t.Late += other.Late
	t.Failed += other.Failed
	if t.Error == "" {
		t.Error = other.Error
	}
}

// addAbandoned adds the grants whose callers had left, because of the deadline.
func (t *tally) addAbandoned(l Limiter) {
	if l.Abandoned != nil {
		t.Late += l.Abandoned()
	}
}

// call makes a call and counts its result. After the deadline of ctx, only a grant counts, as late.
func (t *tally) call(ctx context.Context, l Limiter, key string) {
	granted, err := l.Allow(ctx, key)
	if end, ok := ctx.Deadline(); ok && !time.Now().Before(end) {
		if granted {
			t.Late++
		}
		return
	}
	t.Calls++
	if granted {
		t.Granted++
	}
	if err != nil {
		t.Failed++
		if t.Error == "" {
			t.Error = err.Error()
		}
	}
}

// crowd makes calls from par goroutines, until next returns an empty range of calls. The key of
// a call may depend on the goroutine or on the number of the call.
func crowd(
	ctx context.Context, l Limiter, par int, key func(goroutine, call int) string, next ranges,
) (sum tally) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for g := range par {
		all.Go(func() {
			var mine tally
			for from, to := next(); from < to; from, to = next() {
				for call := from; call < to; call++ {
					mine.call(ctx, l, key(g, call))
				}
			}
			mu.Lock()
			sum.add(mine)
			mu.Unlock()
		})
	}
	all.Wait()
	return sum
}

// ranges returns the calls that a goroutine makes next: the numbers from ≤ n < to.
type ranges func() (from, to int)

// calls distributes n calls among par goroutines. A goroutine takes enough at once for the
// counter to cost little, and few enough for all goroutines to end at about the same time.
func calls(n, par int) ranges {
	var taken atomic.Int64
	batch := min(max(n/(8*par), 1), 250)
	return func() (from, to int) {
		to = int(taken.Add(int64(batch)))
		return to - batch, min(to, n)
	}
}

// until returns calls without end until done is closed.
func until(done <-chan struct{}) ranges {
	return func() (from, to int) {
		select {
		case <-done:
			return 0, 0
		default:
			return 0, 1
		}
	}
}

// on returns a function for calls of one key.
func on(key string) func(goroutine, call int) string {
	return func(int, int) string { return key }
}

// eachItsOwn returns a function that gives each of par goroutines a key of its own.
func eachItsOwn(par int) func(goroutine, call int) string {
	keys := make([]string, par)
	for g := range keys {
		keys[g] = "user-" + strconv.Itoa(g)
	}
	return func(g, _ int) string { return keys[g] }
}
