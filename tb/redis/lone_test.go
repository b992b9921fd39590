package redis

import (
	"context"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
)

// meet makes the next call of l one of several callers.
func (l *Limiter) meet() {
	l.pending.mu.Lock()
	defer l.pending.mu.Unlock()
	l.pending.met = true
}

// watched is a client that calls a function before each command.
type watched struct {
	rueidis.Client
	before func(context.Context)
}

func (c *watched) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	c.before(ctx)
	return c.Client.Do(ctx, cmd)
}

// inAllow reports whether the goroutine is in a call of Allow.
func inAllow() bool {
	stack := make([]byte, 1<<16)
	return strings.Contains(string(stack[:runtime.Stack(stack, false)]), "(*Limiter).Allow(")
}

func TestLoneCallIsSentByItsCaller(t *testing.T) {
	hurried, cancel := context.WithTimeout(t.Context(), patient/2)
	defer cancel()
	for _, opts := range [][]Option{nil, {WithoutBatching()}} {
		var alone []bool
		client := &watched{dial(t, redistest.Start(t)), func(context.Context) {
			alone = append(alone, inAllow())
		}}
		l := newLimiter(t, client, perSecond(100, 1), opts...)
		calls := 0
		call := func(ctx context.Context, what string, want bool) {
			t.Helper()
			if _, err := l.Allow(ctx, "a"); err != nil {
				t.Fatal(err)
			}
			for _, got := range alone {
				if got != want {
					t.Errorf("%s: sent by the caller: %v, want %v", what, got, want)
				}
			}
			alone, calls = nil, calls+1
		}
		call(t.Context(), "the first call", true)
		call(t.Context(), "the next call", true)
		for range 20 {
			call(hurried, "a call with less than the timeout", false)
			call(t.Context(), "a call after one of another goroutine", true)
		}
		l.meet()
		call(t.Context(), "a call after calls that met", false)
		call(t.Context(), "a call after one that met none", true)
		l.failed.Store(l.local())
		call(t.Context(), "a call after a failure", false)
		l.failed.Store(l.local() - calm.Microseconds() - 1)
		call(t.Context(), "a call long after a failure", true)
		if n := l.Stats().Granted; n != uint64(calls) {
			t.Errorf("%d calls granted, want %d", n, calls)
		}
	}
}

// A lone caller returns although the server does not answer, and the breaker counts the call.
func TestLoneCallEndsAtItsTimeout(t *testing.T) {
	s := redistest.Start(t)
	client := &watched{dial(t, s), func(ctx context.Context) {
		if end, ok := ctx.Deadline(); !ok || time.Until(end) > 20*time.Millisecond || !inAllow() {
			t.Error("not sent by the caller, or without its timeout")
		}
	}}
	l := newLimiter(t, client, slow, WithTimeout(20*time.Millisecond))
	pause(t, dial(t, s))
	for l.Stats().Opened == 0 {
		l.failed.Store(0)
		if d, err := l.Allow(t.Context(), "a"); err != nil || d.Allowed {
			t.Fatalf("%+v, %v, want a refusal", d, err)
		}
	}
	if s := l.Stats(); len(s.Failed) != 1 || s.Failed[CauseTimeout] != failuresInARow {
		t.Errorf("failures %v, want %d timeouts", s.Failed, failuresInARow)
	}
}

// Calls that come while a lone call is under way are not sent by its caller, which would return
// late.
func TestLoneCallerSendsNothingForOthers(t *testing.T) {
	for _, second := range []string{"a", "b"} {
		var l *Limiter
		var commands atomic.Int32
		other := make(chan error, 1)
		client := &watched{dial(t, redistest.Start(t)), func(context.Context) {
			if commands.Add(1) > 1 {
				if inAllow() {
					t.Errorf("%s: sent by a caller", second)
				}
				return
			}
			go func() {
				_, err := l.Allow(t.Context(), second)
				other <- err
			}()
			for !l.inCompany() && len(other) == 0 { // on a busy machine, it may have ended
				runtime.Gosched()
			}
		}}
		l = newLimiter(t, client, slow)
		if _, err := l.Allow(t.Context(), "a"); err != nil {
			t.Error(err)
		}
		if err := <-other; err != nil {
			t.Error(err)
		}
	}
}

// inCompany reports whether several calls are not decided.
func (l *Limiter) inCompany() bool {
	l.pending.mu.Lock()
	defer l.pending.mu.Unlock()
	return l.pending.undecided.older != l.pending.undecided.newer
}
