package redis

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb"
)

type unconnected struct{ rueidis.Client }

func (unconnected) Mode() rueidis.ClientMode { return rueidis.ClientModeStandalone }

// A call whose timer is late, because the process did not run, has some time left for its reply.
func TestLateTimerLeavesTimeForAReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, unconnected{}, slow, WithTimeout(time.Millisecond))
		for late, want := range map[time.Duration]time.Duration{0: 0, grace: 0, time.Hour: 2e6} {
			c := callPool.New().(*call)
			c.node, c.stage = &l.nodes[0], waiting
			start := time.Now()
			err := l.await(t.Context(), c, l.local()+(l.timeout-late).Microseconds())
			if d := time.Since(start); d != l.timeout+want {
				t.Errorf("late by %v: the call returns after %v", late, d)
			}
			wantCause(t, err, CauseTimeout)
		}
	})
}

// meet makes the next call of l one of several callers.
func (l *Limiter) meet() {
	l.pending.mu.Lock()
	defer l.pending.mu.Unlock()
	l.pending.met = true
}

type watched struct {
	rueidis.Client
	before func(context.Context)
}

func (c *watched) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	c.before(ctx)
	return c.Client.Do(ctx, cmd)
}

func (l *Limiter) idle() {
	for running := 1; running > 0; runtime.Gosched() {
		l.pending.mu.Lock()
		running = l.pending.flushes
		l.pending.mu.Unlock()
	}
}

// A lone call returns with its reply, although its context was cancelled. Others return at once.
func TestOnlyALoneCallOutlivesItsContext(t *testing.T) {
	for _, opts := range [][]Option{nil, {WithoutBatching()}} {
		sent := func(context.Context) {}
		client := &watched{dial(t, redistest.Start(t)), func(ctx context.Context) { sent(ctx) }}
		l := newLimiter(t, client, perSecond(100, 1), opts...)
		call := func(what string, within time.Duration, alone bool) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			returned := make(chan struct{})
			sent = func(command context.Context) {
				cancel()
				if !alone {
					select {
					case <-returned:
					case <-command.Done(): // the caller waits for this command
					}
				}
			}
			o, err := l.Decide(ctx, "a", 1)
			close(returned)
			if err != nil || alone != (o.Failure == nil) {
				t.Errorf("%s: %+v, %v, want a reply: %t", what, o, err, alone)
			}
			l.idle()
			sent = func(context.Context) {}
		}
		call("the first call", 2*patient, true)
		call("the next call", 2*patient, true)
		call("a call with less than the timeout", patient/2, false)
		for range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), patient/2)
			if d, err := l.Allow(ctx, "a"); err != nil || !d.Allowed {
				t.Errorf("%+v, %v", d, err)
			}
			cancel()
			call("a call after one of another goroutine", 2*patient, true)
		}
		l.meet()
		call("a call after calls that met", 2*patient, false)
		call("a call after one that met none", 2*patient, true)
		l.failed.Store(l.local())
		call("a call after a failure", 2*patient, false)
		l.failed.Store(l.local() - calm.Microseconds() - 1)
		call("a call long after a failure", 2*patient, true)
	}
}

// A lone caller returns although the server does not answer, and the breaker counts the call.
func TestLoneCallEndsAtItsTimeout(t *testing.T) {
	s := redistest.Start(t)
	client := &watched{dial(t, s), func(ctx context.Context) {
		if end, ok := ctx.Deadline(); !ok || time.Until(end) > 20*time.Millisecond {
			t.Error("the client does not know the timeout")
		}
	}}
	l := newLimiter(t, client, slow, WithTimeout(20*time.Millisecond))
	pause(t, dial(t, s))
	for l.Stats().Opened == 0 {
		l.failed.Store(0) // it would not be alone
		if d, err := l.Allow(t.Context(), "a"); err != nil || d.Allowed {
			t.Fatalf("%+v, %v, want a refusal", d, err)
		}
	}
	if s := l.Stats(); len(s.Failed) != 1 || s.Failed[CauseTimeout] != failuresInARow {
		t.Errorf("failures %v, want %d timeouts", s.Failed, failuresInARow)
	}
}

// A lone caller sends its own call, also if another one comes before it begins: it waits for the
// call without a timer, and only its own command ends at the timeout.
func TestLoneCallerSendsItsOwnCall(t *testing.T) {
	l := newLimiter(t, dial(t, redistest.Start(t)), slow, WithoutBatching())
	m, c := l.layout.Load(), callPool.Get().(*call)
	c.add(l.shared, m, "own", "", item{units: m.scale})
	c.node, c.stage, c.deadline = &l.nodes[0], waiting, l.local()+patient.Microseconds()
	b, err := l.join(c, true)
	if b == nil || err != nil {
		t.Fatalf("the call is not alone: %v", err)
	}
	wantTake(t, l, "other", 1, granted(9))
	if len(c.decided) > 0 {
		t.Error("another caller has sent the call")
	}
	l.flushAlone(b)
	if <-c.decided; c.err != nil {
		t.Error(c.err)
	}
}

// A lone call does not wait for calls that come meanwhile, on its key or on another one.
func TestLoneCallReturnsBeforeOthers(t *testing.T) {
	for _, second := range []string{"a", "b"} {
		var commands atomic.Int32
		begun, met, returned := make(chan int), make(chan int), make(chan int)
		client := &watched{dial(t, redistest.Start(t)), func(context.Context) {
			if commands.Add(1) == 1 {
				close(begun)
				<-met
			} else {
				<-returned
			}
		}}
		l := newLimiter(t, client, slow)
		go func() { decide(t, l, "a", ByServer); close(returned) }()
		<-begun
		other := (&crowd{l: l, key: second}).call(t.Context(), 1)
		for l.waiting(second) == 0 && commands.Load() == 1 {
			runtime.Gosched()
		}
		close(met)
		if o := <-other; o.err != nil || !o.Allowed {
			t.Errorf("%+v", o)
		}
	}
}

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
	case 5:
		return l.Hold(ctx, key, time.Now().Add(time.Millisecond))
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
