package redis

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb"
)

// pause makes the server hold back writes and scripts until the returned function is called.
func pause(t *testing.T, c rueidis.Client) (resume func()) {
	t.Helper()
	do(t, c, "CLIENT", "PAUSE", "60000", "WRITE")
	return func() { do(t, c, "CLIENT", "UNPAUSE") }
}

func wantBuckets(t *testing.T, c rueidis.Client, n int) {
	t.Helper()
	if got := number(t, c, "DBSIZE"); got != int64(n) {
		t.Errorf("%d buckets, want %d", got, n)
	}
}

// failure makes a call that the server does not decide, and returns why.
func failure(ctx context.Context, t *testing.T, l *Limiter, key string) error {
	t.Helper()
	o, err := l.Decide(ctx, key, 1)
	if err != nil || o.By != ByPolicy {
		t.Errorf("%+v, %v, want a decision of the failure policy", o, err)
		return err
	}
	return o.Failure
}

func TestCallThatTimedOutTakesNothing(t *testing.T) {
	s := redistest.Start(t)
	operator := dial(t, s)
	l := newLimiter(t, dial(t, s), slow, WithTimeout(10*time.Millisecond))
	do(t, operator, "SCRIPT", "LOAD", l.script.text)
	// The server has this clock.
	l.nodes[0].offset.learn(0, 0, time.Now().UnixMicro()-origin.UnixMicro())
	resume := pause(t, operator)
	for l.Stats().Commands < 1 { // a call that starts late sends nothing
		l.meet() // the client would drop the command of a lone call
		wantCause(t, failure(t.Context(), t, l, "a"), CauseTimeout)
	}
	for l.Stats().Commands < 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Millisecond)
		err := failure(ctx, t, l, "b")
		cancel()
		wantCause(t, err, CauseTimeout)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got error %v, want DeadlineExceeded in it", err)
		}
	}
	resume()
	l.Close() // waits for the commands
	wantBuckets(t, operator, 0)
	if s := l.Stats(); s.Failed[CauseTimeout] < 2 || s.Stale != 2 || s.Commands != 2 {
		t.Errorf("Stats: %+v", s)
	}
}

// wantBound makes more calls on a key than commands may be under way to its node, which is paused
// meanwhile. The others wait. Without batching, calls on one key share none.
func wantBound(t *testing.T, l *Limiter, node rueidis.Client, most int, meanwhile func()) {
	t.Helper()
	resume := pause(t, node)
	var all sync.WaitGroup
	for range 2 * maxInFlight {
		all.Go(func() { decide(t, l, "06S", ByServer) }) // of slot 0
	}
	n := 0
	for settled := false; !settled; runtime.Gosched() { // all calls wait, and no flush begins
		n = l.Stats().InFlight
		l.pending.mu.Lock()
		waiting := len(l.pending.ready) + len(l.pending.blocked[&l.nodes[0]])
		settled = n == l.pending.flushes && n+waiting == 2*maxInFlight
		l.pending.mu.Unlock()
	}
	if n != most {
		t.Errorf("%d commands under way, want %d", n, most)
	}
	meanwhile()
	resume()
	all.Wait()
}

func TestCallsBeyondTheBoundWait(t *testing.T) {
	s := redistest.Start(t)
	l := newLimiter(t, dial(t, s), ample, WithoutBatching())
	wantBound(t, l, dial(t, s), maxInFlight, func() {})
}

// The server's clock is set forward by ten minutes: the deadline of a call has long passed there.
func TestStepOfTheClockCostsOneCommand(t *testing.T) {
	l := newLimiter(t, dial(t, redistest.Start(t)), slow)
	now := l.local()
	l.nodes[0].offset.learn(now, now, time.Now().Add(-10*time.Minute).UnixMicro())
	for i := range 3 {
		wantTake(t, l, "a", 1, granted(9-i))
	}
	if s := l.Stats(); s.Stale != 1 || s.ClockSteps != 1 || s.Offset.Abs() > s.OffsetError {
		t.Errorf("Stats: %+v", s)
	}
}

func TestErrorsNameTheirCause(t *testing.T) {
	for _, tt := range []struct {
		cause   Cause
		prepare []string
	}{
		{CauseForeign, []string{"LPUSH", "tb:{a}", "x"}},
		{CauseForeign, []string{"SET", "tb:{a}", "1750000000.123"}},
		{CauseReadOnly, []string{"REPLICAOF", "127.0.0.1", "1"}},
		{CauseReadOnly, []string{"CONFIG", "SET", "min-replicas-to-write", "1"}},
		{CauseForbidden, []string{"ACL", "SETUSER", "default", "-eval"}},
		{CauseForbidden, []string{"ACL", "SETUSER", "default", "resetkeys", "~other:*"}},
		{CauseCluster, []string{"CLUSTER", "RESET"}},
	} {
		t.Run(tt.cause.String(), func(t *testing.T) {
			var args []string
			if tt.cause == CauseCluster {
				args = []string{"--cluster-enabled", "yes"}
			}
			c := dial(t, redistest.Start(t, args...))
			do(t, c, tt.prepare...)
			l := newLimiter(t, c, slow)
			wantCause(t, failure(t.Context(), t, l, "a"), tt.cause)
			if tt.cause == CauseForeign { // also a call that writes nothing
				_, err := l.Peek(t.Context(), "a")
				wantCause(t, err, CauseForeign)
			}
		})
	}
}

func TestConfigErrors(t *testing.T) {
	c := dial(t, redistest.Start(t))
	for _, tt := range []struct {
		field  string
		client rueidis.Client
		limit  tb.Limit
		option Option
	}{
		{"client", nil, slow, Option{}},
		{"Capacity", c, tb.Limit{}, Option{}},
		{"WithPrefix", c, slow, WithPrefix("{tag}")},
		{"WithTimeout", c, slow, WithTimeout(time.Millisecond - 1)},
		{"WithPolicy", c, slow, WithPolicy(Fail + 1)},
		{"WithPolicy", c, slow, WithPolicy(LocalShare(0))},
		{"WithPolicy", c, slow, WithPolicy(LocalShare(11))},
	} {
		_, err := New(tt.client, tt.limit, tt.option)
		var cfg *tb.ConfigError
		if !errors.As(err, &cfg) || cfg.Field != tt.field || cfg.Range == "" {
			t.Errorf("got error %v, want a *tb.ConfigError for %s", err, tt.field)
		}
	}
}

// open makes the breaker open, without a probe during a test.
func open(l *Limiter) {
	for i := range int64(failuresInARow) {
		now := l.local() + patient.Microseconds()
		l.nodes[0].breaker.observe(now+i, errTest, now)
	}
}

// A closed limiter decides nothing, although its breaker is open or another limiter sends the
// command.
func TestClosedLimiterDecidesNothing(t *testing.T) {
	c := dial(t, redistest.Start(t))
	working, closed := newLimiter(t, c, slow), newLimiter(t, c, slow, WithPolicy(Allow))
	open(closed)
	closed.Close()
	if o, err := closed.Decide(t.Context(), "a", 1); !errors.Is(err, ErrClosed) {
		t.Errorf("Decide: %+v, %v, want ErrClosed", o, err)
	}
	_, ok, err := TakeAll(t.Context(), time.Now(), []tb.Charge{
		newCharge(t, working, "a", 1), newCharge(t, closed, "b", 1),
	}, nil)
	if ok || !errors.Is(err, ErrClosed) {
		t.Errorf("TakeAll: %t, %v, want ErrClosed", ok, err)
	}
	wantTokens(t, working, "a", 10) // the first charge was undone
}

// The server of the other tests has one version. These are the texts of others.
func TestErrorsOfOtherVersionsNameTheirCause(t *testing.T) {
	const old = "ERR Error running script (call to f_0b5e): @user_script:1: "
	const end = " script: 0b5e, on @user_script:1."
	c := dial(t, redistest.Start(t))
	for _, tt := range []struct {
		cause Cause
		text  string
	}{
		{CauseForbidden, old + "@user_script: 1: The user executing the script can't run this command"},
		{CauseOutOfMemory, old + "@user_script: 1: -OOM command not allowed"},
		{CauseReadOnly, old + "@user_script: 1: -READONLY You can't write against a read only replica."},
		{CauseReadOnly, old + "@user_script: 1: -NOREPLICAS Not enough good replicas to write."},
		{CauseForeign, old + "WRONGTYPE Operation against a key"},
		{CauseRejected, old + "attempt to call a nil value"},
		{CauseForbidden, "ERR The user executing the script can't access at least one of the keys" + end},
		{CauseForbidden, "ERR ACL failure in script: User a has no permissions to run 'set'" + end},
		{CauseForbidden, "ERR ACL failure in script: No permissions to access a key" + end},
		{CauseForeign, "WRONGTYPE Operation against a key" + end},
		{CauseRejected, "ERR user_script:1: Attempt to modify a readonly table" + end},
	} {
		reply := c.B().Eval().Script("return redis.error_reply(ARGV[1])").Numkeys(0).Arg(tt.text)
		err := c.Do(t.Context(), reply.Build()).Error()
		if err == nil {
			t.Fatalf("%q is not an error", tt.text)
		}
		wantCause(t, clientError(err), tt.cause)
	}
}
