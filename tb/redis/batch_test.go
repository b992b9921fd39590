package redis

import (
	"context"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
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

func (c *crowd) on(key string) *crowd { return &crowd{l: c.l, key: key} }

type outcome struct {
	tb.Decision
	err error
}

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
	b := c.on("b")
	other := b.send(t.Context(), 1)
	leave = append(leave, b.join(ctx, 1)) // then no call on this key waits
	cancel()
	for _, o := range leave {
		wantCause(t, (<-o).err, CauseCanceled)
	}
	commands := c.l.Stats().Commands
	resume()
	wantOutcome(t, first, granted(9))
	wantOutcome(t, other, granted(9))
	for i, o := range stay {
		wantOutcome(t, o, granted(8-i))
	}
	if n := c.l.Stats().Commands - commands; n != 1 {
		t.Errorf("%d commands for the callers that stay, want 1", n)
	}
	wantTokens(t, c.l, "a", 5)
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

// Of two callers in one command, the deadline of one passes before the server decides, whose clock
// was set. The other one pays. The late one still waits, so a second command has its cost.
func TestEachCostHasItsDeadline(t *testing.T) {
	for early := range 2 {
		var commands atomic.Int32
		joined := make(chan int)
		clock := func() time.Time {
			switch n := commands.Add(1); {
			case n == 2:
				<-joined
			case n > 2:
				return time.Now().Add(patient * 3 / 4)
			}
			return time.Now()
		}
		l, err := startSimulator(t, bucketsText).newLimiter(clock, slow)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		decide(t, l, "a", ByServer) // the first command knows no clock
		c := &crowd{l: l, key: "a"}
		first := c.send(t.Context(), 1)
		var both [2]<-chan outcome
		for i := range both {
			within := [2]time.Duration{patient / 2, 2 * patient}[(i+early)%2]
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			both[i] = c.join(ctx, 2+i)
		}
		close(joined)
		wantOutcome(t, first, granted(8))
		wantOutcome(t, both[1-early], granted(8-2-(1-early)))
		wantOutcome(t, both[early], granted(8-2-3))
		if s := l.Stats(); s.Commands != 4 || s.Stale != 0 || s.ClockSteps != 1 {
			t.Errorf("Stats: %+v", s)
		}
	}
}

// A call leaves its batch at its deadline: without a clock of the server it would pay.
func TestLateCallLeavesTheBatch(t *testing.T) {
	l := newLimiter(t, unconnected{}, slow)
	for now, stays := range map[int64]bool{49: true, 50: false} {
		c := &call{parts: make([]part, 1), deadline: 50, decided: make(chan struct{}, 1)}
		if l.prune(&batch{queues: []*queue{{buckets: 1, batched: []*call{c}}}}, now) != stays {
			t.Errorf("at %d: stays %t", now, !stays)
		}
	}
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

// busy lets as many commands be under way as may take several buckets along. Further calls wait.
func (c *crowd) busy(t *testing.T) (others []<-chan outcome) {
	t.Helper()
	for i := range maxShared {
		others = append(others, c.on("busy "+strconv.Itoa(i)).send(t.Context(), 1))
	}
	return others
}

// A command has no further call once it has maxItems of them, or maxBuckets keys.
func TestCommandIsFilledUpToItsBounds(t *testing.T) {
	limit := tb.Limit{Capacity: 1000, Tokens: 1, Per: 24 * time.Hour}
	for _, tt := range []struct {
		calls    []int // on each key
		commands uint64
	}{
		{[]int{maxItems - 1, 1}, 1},
		{[]int{maxItems, 1}, 2},
		{[]int{maxItems + 5, 1}, 2},
		{[]int{100, 29}, 2},
		{slices.Repeat([]int{2}, maxBuckets), 1},
		{slices.Repeat([]int{2}, maxBuckets+1), 2},
	} {
		c, resume := startCrowd(t, limit)
		s := &c.l.pending
		s.flushes = maxShared - 1 // only one command is under way
		all := []<-chan outcome{c.send(t.Context(), 1)}
		before := c.l.Stats().Commands
		for i, n := range tt.calls {
			on := c.on(strconv.Itoa(i))
			for range n {
				all = append(all, on.join(t.Context(), 1))
			}
		}
		resume()
		for _, o := range all {
			if got := <-o; got.err != nil || !got.Allowed {
				t.Errorf("%+v", got)
			}
		}
		if n := c.l.Stats().Commands - before; n != tt.commands {
			t.Errorf("%d commands for %d calls on each key, want %d", n, tt.calls, tt.commands)
		}
	}
}

func TestTwoBatchesAreUnderWay(t *testing.T) {
	c, resume := startCrowd(t, slow)
	before := c.l.Stats().Commands
	c.l.pending.mu.Lock()
	c.l.begin()
	c.l.pending.mu.Unlock()
	var all []<-chan outcome
	for i := range maxBuckets + 1 {
		all = append(all, c.on(strconv.Itoa(i)).join(t.Context(), 1))
	}
	go c.l.flush()
	for c.l.Stats().Commands < before+2 {
		runtime.Gosched()
	}
	resume()
	for _, o := range all {
		wantOutcome(t, o, granted(9))
	}
}

type outcomes struct {
	charges   []tb.Charge
	decisions []tb.Decision
	ok        bool
	err       error
}

func (l *Limiter) ready() int {
	l.pending.mu.Lock()
	defer l.pending.mu.Unlock()
	return len(l.pending.ready)
}

// joinAll takes tokens of several keys. Its call waits for the next batch when joinAll returns.
func (c *crowd) joinAll(t *testing.T, costs map[string]float64, keys ...string) <-chan outcomes {
	t.Helper()
	var charges []tb.Charge
	for _, key := range keys {
		charges = append(charges, newCharge(t, c.l, key, costs[key]))
	}
	before := c.l.ready()
	o := make(chan outcomes, 1)
	go func() {
		decisions, ok, err := TakeAll(context.Background(), time.Now(), charges, nil)
		o <- outcomes{charges, decisions, ok, err}
	}()
	for c.l.ready() == before {
		runtime.Gosched()
	}
	return o
}

// Calls of TakeAll that meet share a command, also with other calls, and on the same buckets. They
// are decided in their order, each of them all or none.
func TestCallsOfTakeAllShareABatch(t *testing.T) {
	c, resume := startCrowd(t, slow)
	before := c.l.Stats()
	others := c.busy(t)
	costs := map[string]float64{"a": 1, "b": 1, "tenant": 4}
	all := []<-chan outcomes{
		c.joinAll(t, costs, "a", "tenant"), c.joinAll(t, costs, "b", "tenant"),
		c.joinAll(t, costs, "a", "b", "tenant"), // refused by the tenant
	}
	lone := c.on("b").join(t.Context(), 3)
	all = append(all, c.joinAll(t, costs, "a", "b"))
	resume()
	for _, o := range others {
		wantOutcome(t, o, granted(9))
	}
	for i, want := range [][]tb.Decision{
		{granted(9), granted(6)}, {granted(9), granted(2)},
		{granted(8), granted(8), refused(0, 2)}, {granted(8), granted(5)},
	} {
		got := <-all[i]
		if got.err != nil || got.ok != (i != 2) || len(got.decisions) != len(want) {
			t.Fatalf("call %d: %+v, want %+v", i, got, want)
		}
		for j, d := range got.decisions {
			if d.Allowed != want[j].Allowed || d.Remaining != want[j].Remaining {
				t.Errorf("call %d: %+v, want %+v", i, got.decisions, want)
			}
		}
	}
	wantOutcome(t, lone, granted(6))
	s := c.l.Stats()
	if n := s.Commands - before.Commands; n != maxShared+1 {
		t.Errorf("%d commands, want %d: %+v", n, maxShared+1, s)
	}
	if n := s.Granted + s.Refused - before.Granted - before.Refused; n != maxShared+1+9 {
		t.Errorf("%d decisions, want %d: %+v", n, maxShared+1+9, s)
	}
}

// What is wrong with a bucket is an error of its own call only. If Redis refuses to write, calls
// that write nothing are still decided.
func TestErrorOfATakeAllDoesNotConcernTheOthers(t *testing.T) {
	costs := map[string]float64{"a": 1, "b": 1, "foreign": 1, "c": 11}
	for _, tt := range []struct {
		prepare [][]string
		causes  [3]Cause // of calls on a and b, on a and foreign, and on a and c; 0 for none
	}{
		{[][]string{{"SET", "tb:{foreign}", "x"}}, [3]Cause{0, CauseForeign, 0}},
		{
			[][]string{{"CONFIG", "SET", "maxmemory", "1"}},
			[3]Cause{CauseOutOfMemory, CauseOutOfMemory, 0},
		},
		{
			[][]string{{"LPUSH", "tb:{foreign}", "x"}, {"CONFIG", "SET", "maxmemory", "1"}},
			[3]Cause{CauseOutOfMemory, CauseForeign, 0},
		},
	} {
		c, resume := startCrowd(t, slow, tt.prepare...)
		others := c.busy(t)
		var all []<-chan outcomes
		for _, second := range []string{"b", "foreign", "c"} {
			all = append(all, c.joinAll(t, costs, "a", second))
		}
		resume()
		for _, o := range others {
			<-o
		}
		for i, o := range all {
			got := <-o
			failure := got.charges[1].(*Charge).Failure()
			if tt.causes[i] != 0 {
				wantCause(t, failure, tt.causes[i])
			} else if failure != nil || got.err != nil || got.ok != (i == 0) {
				t.Errorf("%v, call %d: %+v, %v", tt.prepare, i, got, failure)
			}
		}
	}
}
