package redis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// outcomes is what a TakeAll has returned.
type outcomes struct {
	charges   []tb.Charge
	decisions []tb.Decision
	ok        bool
	err       error
}

// ready returns how many queues wait for a batch.
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

// groupsAsMutex runs the script on several groups of buckets, which have buckets in common, in one
// command. The decisions must be the same as of TakeAll on tb/mutex, in the same order.
func groupsAsMutex(s *simulator) error {
	rng := rand.New(rand.NewPCG(3, 17))
	for range 20 {
		if err := s.compareGroups(rng); err != nil {
			return err
		}
	}
	return nil
}

func (s *simulator) compareGroups(rng *rand.Rand) error {
	now := uint64(noon)
	clock := func() time.Time { return time.UnixMicro(int64(now)) }
	limit := perSecond(1+rng.IntN(20), 1+rng.Int64N(20))
	m, err := newLayout(limit, 0)
	if err != nil {
		return err
	}
	oracle, err := mutex.New[string](limit, tb.WithClock(clock))
	if err != nil {
		return err
	}
	if _, err := oracle.AllowAt(time.Unix(0, 0), "the first reading", 1); err != nil {
		return err
	}
	prefix := fmt.Sprint(rng.Uint64())
	for range 10 {
		now += rng.Uint64N(1_000_000)
		size := 1 + rng.IntN(3)
		var parts []part
		var costs []int
		for range 6 {
			for _, i := range rng.Perm(3)[:size] {
				n := 1 + rng.IntN(limit.Capacity/3+1)
				costs = append(costs, n)
				parts = append(parts, m.part(prefix+string(rune('a'+i)), item{units: m.unitsOf(float64(n))}))
			}
		}
		r, err := s.run(now, size, parts...)
		if err != nil {
			return err
		}
		for i := 0; i < len(parts); i += size {
			var charges []tb.Charge
			var got []tb.Decision
			granted := true
			for j := i; j < i+size; j++ {
				c, err := oracle.Charge(parts[j].name, float64(costs[j]))
				if err != nil {
					return err
				}
				charges = append(charges, &c)
				found, failure := r.bucket(j)
				if failure != nil {
					return failure
				}
				state := m.found(found, r.now)
				d := m.apply(&state, &parts[j].items[0]).Decision
				got, granted = append(got, d), granted && d.Allowed
			}
			want, ok, err := tb.TakeAll(clock(), charges, nil)
			if err != nil || ok != granted || fmt.Sprint(got) != fmt.Sprint(want) {
				return fmt.Errorf("limit %+v: %+v, tb/mutex has %+v, %w", limit, got, want, err)
			}
		}
	}
	return nil
}
