package redis

import (
	"context"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb"
)

// crowd makes calls on a key of a limiter whose server is paused.
type crowd struct {
	l    *Limiter
	key  string
	made int // calls that wait for a command
}

// on returns a crowd on another key.
func (c *crowd) on(key string) *crowd { return &crowd{l: c.l, key: key} }

// outcome is what a call returned.
type outcome struct {
	tb.Decision
	err error
}

// waiting returns how many calls on a key wait for a command.
func (l *Limiter) waiting(key string) (n int) {
	l.pending.mu.Lock()
	defer l.pending.mu.Unlock()
	if q := l.pending.queues[key]; q != nil {
		for _, c := range q.waiting {
			if c.stage == waiting {
				n++
			}
		}
	}
	return n
}

// send makes a call whose command is under way when it returns.
func (c *crowd) send(ctx context.Context, n int) <-chan outcome {
	commands := c.l.Stats().Commands
	o := c.call(ctx, n)
	for c.l.Stats().Commands == commands {
		runtime.Gosched()
	}
	return o
}

// join makes a call for n tokens, which waits for the next command when join returns.
func (c *crowd) join(ctx context.Context, n int) <-chan outcome {
	o := c.call(ctx, n)
	c.made++
	for c.l.waiting(c.key) < c.made {
		runtime.Gosched()
	}
	return o
}

func (c *crowd) call(ctx context.Context, n int) <-chan outcome {
	o := make(chan outcome, 1)
	go func() {
		d, err := c.l.Decide(ctx, c.key, float64(n))
		if d.Failure != nil {
			err = d.Failure
		}
		o <- outcome{d.Decision, err}
	}()
	return o
}

func wantOutcome(t *testing.T, got <-chan outcome, want tb.Decision) {
	t.Helper()
	if o := <-got; o.err != nil || o.Allowed != want.Allowed || o.Remaining != want.Remaining {
		t.Errorf("%+v, want %+v", o, want)
	}
}

// startCrowd returns a limiter that knows the clock of its server, which is paused after some
// commands.
func startCrowd(t *testing.T, limit tb.Limit, commands ...[]string) (c *crowd, resume func()) {
	t.Helper()
	s := redistest.Start(t)
	for _, command := range commands {
		do(t, dial(t, s), command...)
	}
	l := newLimiter(t, dial(t, s), limit)
	if _, err := l.Allow(t.Context(), "another key"); err != nil {
		t.Fatal(err)
	}
	return &crowd{l: l, key: "a"}, pause(t, dial(t, s))
}

func TestCallsThatMeetShareABatch(t *testing.T) {
	c, resume := startCrowd(t, slow)
	before := c.l.Stats().Commands
	first := c.send(t.Context(), 1)
	var others []<-chan outcome
	for _, n := range []int{4, 6, 3, 11, 3, 2} {
		others = append(others, c.join(t.Context(), n))
	}
	resume()
	wantOutcome(t, first, granted(9))
	for i, want := range []tb.Decision{ // in the order in which they came
		granted(5), refused(0, 5), granted(2), refused(0, 2), refused(0, 2), granted(0),
	} {
		wantOutcome(t, others[i], want)
	}
	if s := c.l.Stats(); s.Commands != before+2 || s.RefusedLocally != 0 {
		t.Errorf("%d commands, want 2: %+v", s.Commands-before, s)
	}
}

// A command has the calls of one limit. A call under another limit waits for the next command.
func TestCallsUnderTwoLimitsMeet(t *testing.T) {
	c, resume := startCrowd(t, slow)
	large := c.l
	small, err := large.Tier(tb.Limit{Capacity: 5, Tokens: 1, Per: 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	before := large.Stats().Commands
	all := []<-chan outcome{c.send(t.Context(), 1), c.join(t.Context(), 2)}
	for _, l := range []*Limiter{small, large} {
		c.l = l
		all = append(all, c.join(t.Context(), 1))
	}
	resume()
	for i, want := range []int{9, 7, 4, 3} { // 7 tokens, but 5 under the small limit
		wantOutcome(t, all[i], granted(want))
	}
	if n := c.l.Stats().Commands - before; n != 4 {
		t.Errorf("%d commands, want 4", n)
	}
}

func TestCallerThatLeavesBeforeTheCommandTakesNothing(t *testing.T) {
	c, resume := startCrowd(t, slow)
	ctx, cancel := context.WithCancel(t.Context())
	var leave, stay []<-chan outcome
	first := c.send(t.Context(), 1)
	for i := range 9 { // the first, the last and some in between leave
		if i%2 == 0 {
			leave = append(leave, c.join(ctx, 1))
		} else {
			stay = append(stay, c.join(t.Context(), 1))
		}
	}
	cancel()
	for _, o := range leave {
		wantCause(t, (<-o).err, CauseCanceled)
	}
	if n := c.l.waiting("a"); n != len(stay) {
		t.Errorf("%d calls wait, want %d", n, len(stay))
	}
	resume()
	wantOutcome(t, first, granted(9))
	for i, o := range stay {
		wantOutcome(t, o, granted(8-i))
	}
	if v, err := c.l.Level(t.Context(), "a"); err != nil || int(v.Tokens) != 5 {
		t.Errorf("%+v, %v, want 5 tokens", v, err)
	}
}

// A caller whose context is cancelled while its command is under way pays: the command is sent.
func TestCallerThatLeavesTheCommandPays(t *testing.T) {
	c, resume := startCrowd(t, slow)
	ctx, cancel := context.WithCancel(t.Context())
	c.l.meet()
	o := c.send(ctx, 3)
	stay := c.join(t.Context(), 1)
	cancel()
	wantCause(t, (<-o).err, CauseCanceled)
	resume()
	wantOutcome(t, stay, granted(6))
	if n := c.l.Stats().Abandoned; n != 1 {
		t.Errorf("%d calls abandoned, want 1", n)
	}
}

// newCall returns a call that has the timeout of a patient limiter.
func newCall(deadline int64, cost uint64) *call {
	return &call{
		parts: []part{{items: []item{{units: cost}}}}, deadline: deadline,
		timeout: deadline + patient.Microseconds(), decided: make(chan struct{}, 1),
	}
}

// filled returns a batch of calls on the key "a".
func (l *Limiter) filled(calls ...*call) *batch {
	l.pending.mu.Lock()
	for _, c := range calls {
		c.node, c.parts[0].limiter, c.parts[0].layout = &l.nodes[0], l.shared, l.layout.Load()
		l.add(c)
	}
	l.pending.ready = append(l.pending.ready, &queue{
		node: &l.nodes[0], key: "a", name: l.name("a"), buckets: 1, waiting: slices.Clone(calls),
	})
	l.pending.mu.Unlock()
	b := new(batch)
	l.fill(b)
	return b
}

// Of two callers in one command, the deadline of one passes before the server decides.
func TestEachCostHasItsDeadline(t *testing.T) {
	for _, early := range []int{0, 1} {
		c, resume := startCrowd(t, slow)
		l := c.l
		now := l.local()
		late := now + patient.Microseconds()
		calls := []*call{newCall(late, 4*l.layout.Load().scale), newCall(late, 2*l.layout.Load().scale)}
		calls[early].deadline = now + 100_000
		b := l.filled(calls...)
		commands, done := l.Stats().Commands, make(chan struct{})
		go func() { l.send(t.Context(), b); close(done) }()
		for l.Stats().Commands == commands || l.local() <= calls[early].deadline {
			runtime.Gosched()
		}
		if now := l.local(); now > calls[1-early].deadline {
			t.Fatal("the test is too slow")
		}
		resume()
		<-done
		wantCause(t, calls[early].err, CauseTimeout)
		if c := calls[1-early]; c.err != nil || c.parts[0].before.deficit != 0 {
			t.Errorf("the other call: %v, %+v", c.err, c.parts[0].before)
		}
		v, err := l.Level(t.Context(), "a")
		if want := 10 - []int{2, 4}[early]; err != nil || int(v.Tokens) != want {
			t.Errorf("%+v, %v, want %d tokens", v, err, want)
		}
	}
}

// What is late leaves a batch before its command, up to the last call.
func TestLateCallsLeaveTheBatch(t *testing.T) {
	l := newLimiter(t, dial(t, redistest.Start(t)), slow)
	l.pending.flushes = maxShared // no other flush takes them
	var calls []*call
	for i, deadline := range []int64{100, 50} {
		c := newCall(deadline, 1)
		c.parts[0].limiter, c.parts[0].layout = l.shared, l.layout.Load()
		l.pending.mu.Lock()
		l.add(c)
		l.pending.mu.Unlock()
		name := strconv.Itoa(i)
		l.pending.ready = append(l.pending.ready, &queue{
			node: &l.nodes[0], key: name, name: name, buckets: 1, waiting: []*call{c},
		})
		calls = append(calls, c)
	}
	b := new(batch)
	l.fill(b)
	for _, tt := range []struct {
		now  int64
		left int
	}{{49, 2}, {50, 1}, {99, 1}, {100, 0}} {
		some := l.prune(b, tt.now)
		if some != (tt.left > 0) || b.calls != tt.left || len(b.entries) != tt.left {
			t.Errorf("at %d: %d calls, %d buckets, want %d", tt.now, b.calls, len(b.entries), tt.left)
		}
	}
	for _, c := range calls {
		wantCause(t, c.err, CauseTimeout)
	}
	l.pending.flushes = 0
}

// A command that is late for the server is repeated once, and not for as long as its clock is set.
func TestClockThatIsSetAgainAndAgain(t *testing.T) {
	now := int64(noon)
	clock := func() time.Time {
		now += time.Hour.Microseconds()
		return time.UnixMicro(now)
	}
	l, err := startSimulator(t, bucketsText).newLimiter(clock, slow)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	decide(t, l, "a", ByServer) // the first command knows no clock
	wantCause(t, failure(t.Context(), t, l, "a"), CauseTimeout)
	if s := l.Stats(); s.Commands != 1+2 || s.Stale != 2 {
		t.Errorf("%d commands more, of which %d were late, want 2", s.Commands-1, s.Stale)
	}
}
