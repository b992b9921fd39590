package linearizable

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/anishathalye/porcupine"
	"go.uber.org/goleak"

	"github.com/seed-181794aa/ratelimit/proof/span"
	"github.com/seed-181794aa/ratelimit/tb"
)

// No test leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var histories = flag.Int("histories", 250,
	"the least number of concurrent histories of each kind to check")

// census counts the events that the histories of a test contain.
type census struct {
	histories, buckets int
	reordered          int // histories that the order of the calls does not explain
	evictedFull        int
	evictedInDebt      int
	refusedNew         int // calls refused because the table had no room for a new key
	moves              int // keys inserted at span.Origin and granted when their delta had ended

	// Pairs of calls that overlapped on one key, of which one was granted: with another grant, with
	// a Reserve that was granted, with a Cancel, with a Settle, and on any key with a SetLimit.
	grants, reserves, cancels, settles, limits int
}

// add counts the history of s.
func (c *census) add(s *scenario, history []porcupine.Operation, raced tb.Stats) {
	c.histories++
	c.evictedFull += int(raced.EvictedFull)
	c.evictedInDebt += int(raced.EvictedInDebt)
	c.refusedNew += int(raced.RefusedNew)
	if s.bucket {
		c.buckets++
	}
	if !s.inOrderOfCall(history) {
		c.reordered++
	}
	moved := map[string]bool{}
	for _, a := range history {
		x := a.Input.(*request)
		granted := x.verb <= reserve && a.Output.(reply).Allowed
		moved[x.key] = x.verb != reset && (moved[x.key] ||
			granted && s.edge && x.at >= span.Delta(s.limit))
		for _, b := range history {
			y := b.Input.(*request)
			if x == y || a.Call >= b.Return || b.Call >= a.Return || !b.Output.(reply).Allowed ||
				y.verb == peek {
				continue
			}
			switch {
			case x.verb == setLimit:
				c.limits++
			case x.key != y.key:
			case granted && x.verb == reserve:
				c.reserves++
			case granted:
				c.grants++
			case x.verb == cancel:
				c.cancels++
			case x.verb == settle:
				c.settles++
			}
		}
	}
	for _, r := range s.prologue {
		if r.at == 0 && moved[r.key] {
			c.moves++
		}
	}
}

// TestHistoriesAreLinearizable checks random histories of tb/cas.
func TestHistoriesAreLinearizable(t *testing.T) {
	for _, procs := range []int{2, 8} {
		for _, maxKeys := range []int{100, 1, 3} {
			t.Run(fmt.Sprintf("%d processors, %d keys", procs, maxKeys), func(t *testing.T) {
				checkHistories(t, procs, func(seed uint64) *scenario {
					return newTakes(rand.New(rand.NewPCG(seed, uint64(maxKeys))), maxKeys)
				}, func(c *census) int {
					if maxKeys < 4 {
						return min(c.grants/2, c.reordered, c.evictedFull, c.evictedInDebt, c.refusedNew)
					}
					return min(c.grants/2, c.reordered, c.moves, c.buckets)
				})
			})
		}
	}
}

// TestReservationsAreLinearizable checks random histories of tb/cas with reservations that are
// cancelled and settled, and with limits that change.
func TestReservationsAreLinearizable(t *testing.T) {
	for _, procs := range []int{1, 2, 8} {
		t.Run(fmt.Sprint(procs, " processors"), func(t *testing.T) {
			checkHistories(t, procs, func(seed uint64) *scenario {
				return newReservations(rand.New(rand.NewPCG(seed, 14)))
			}, func(c *census) int {
				return 5 * min(c.reserves, c.cancels, c.settles, c.limits, c.buckets, c.reordered)
			})
		})
	}
}

// checkHistories checks at least as many histories as the flag -histories says, and more until the
// rarest of the events that matter has come in one of ten.
func checkHistories(
	t *testing.T, procs int, newScenario func(seed uint64) *scenario, rarest func(*census) int,
) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
	least := *histories
	if testing.Short() {
		least /= 10
	}
	var c census
	for seed := 0; seed < least || rarest(&c) < least/10; seed++ {
		if seed == 50*least {
			t.Fatalf("the histories have too few collisions: %+v", c)
		}
		s := newScenario(uint64(seed))
		history, raced := s.play()
		if !s.linearizable(history) {
			s.log(t, history)
			t.Fatalf("seed %d: not linearizable", seed)
		}
		c.add(s, history, raced)
	}
	t.Logf("%+v", c)
}

// log logs the calls of a history and their replies, in the order of the calls.
func (s *scenario) log(t *testing.T, history []porcupine.Operation) {
	t.Helper()
	t.Logf("limit %+v, %d keys, %v", s.limit, s.maxKeys, s.overflow)
	for _, o := range byCall(history) {
		a := o.Output.(reply)
		t.Logf("%3d to %3d, goroutine %d: %v: %+v %v %v", o.Call, o.Return, o.ClientId, o.Input,
			a.Decision, a.delay, a.err)
	}
}
