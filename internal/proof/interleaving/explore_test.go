package interleaving

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/proof/modelcheck"
	"github.com/seed-181794aa/ratelimit/internal/proof/modelcheck/registry"
	"github.com/seed-181794aa/ratelimit/tb"
)

// scenario is a program for the explorer: calls by several threads on a small table.
type scenario struct {
	name      string
	maxKeys   int
	overflow  tb.Overflow
	collide   bool // all keys have the same hash
	oneBucket bool // the limiter is a cas.Bucket
	undone    bool // the order of eviction may rank a key later than its stamp
	full      bool // the table has a full bucket whenever it evicts a key
	moves     bool // a charge may be undone after its bucket has moved
	deep      bool // every schedule is followed even if maps are tiny
	short     bool // the scenario is part of a short test
	before    []call
	threads   [][]call
}

// The methods that a scenario calls.
const (
	take    = iota // AllowAt
	takeOne        // Allow
	peek           // Peek
	reset          // Reset
	takeAll        // TakeAll
)

type call struct {
	op  int
	key string
	at  float64 // the reading, in seconds
	n   int
}

func (c call) String() string {
	switch c.op {
	case take:
		return fmt.Sprintf("take %d of %s at %vs", c.n, c.key, c.at)
	case takeOne:
		return fmt.Sprintf("take 1 of %s at %vs", c.key, c.at)
	case peek:
		return fmt.Sprintf("peek %s at %vs", c.key, c.at)
	case takeAll:
		return fmt.Sprintf("take %d of each of %s at %vs", c.n, c.key, c.at)
	}
	return "reset " + c.key
}

// exhausted is a reading at which a bucket whose base is at reading 0 has exhausted its delta.
const exhausted = 300_000

// timeOf returns the reading of a call.
func timeOf(at float64) time.Time {
	return time.Unix(0, 0).Add(time.Duration(at * float64(time.Second)))
}

// capacity is the capacity of all buckets. They are refilled at one token a second.
const capacity = 10

func (*scenario) limit() tb.Limit {
	return tb.Limit{Capacity: capacity, Tokens: 1, Per: time.Second}
}

func (s *scenario) options(now *time.Time) []tb.Option {
	return []tb.Option{
		tb.WithClock(func() time.Time { return *now }),
		tb.WithMaxKeys(max(s.maxKeys, 1)), tb.WithOverflow(s.overflow),
	}
}

// explore runs a variant of the code through the schedules of s, and checks them with m.
func (s scenario) explore(variant string, m *oracle, o modelcheck.Options) modelcheck.Result {
	return modelcheck.Explore(func() modelcheck.Program {
		now := new(time.Time)
		l, err := registry.Variants[variant](registry.Config{
			Limit: s.limit(), Options: s.options(now),
			Keys: slices.Concat(s.keys(), newKeys), Collide: s.collide, OneBucket: s.oneBucket,
		})
		if err != nil {
			panic(err)
		}
		y := newTally(s.limit(), l)
		w := newWatch(l, len(s.threads))
		do := func(c call) any {
			y.called(c)
			a := c.on(l, now)
			y.returned(c, a)
			return a
		}
		for _, c := range s.before {
			do(c)
		}
		p := modelcheck.Program{
			Invariant: func() error {
				w.stepped()
				return errors.Join(l.CheckSize(), y.checkBound())
			},
			Returned: w.check,
			Recorded: w.recorded,
			Format:   formatWord,
			Final: func(history [][]modelcheck.Returned) error {
				if err := errors.Join(l.CheckTable(s.undone), y.checkNothingLost()); err != nil {
					return err
				}
				if n := l.Stats().EvictedInDebt; n > 0 && s.full {
					return fmt.Errorf("%d debts are forgiven while a full bucket is in the table", n)
				}
				return m.judge(history, s.aftermath(l, now))
			},
		}
		for i, calls := range s.threads {
			var thread []modelcheck.Call
			for _, c := range calls {
				thread = append(thread, modelcheck.Call{Name: c, Do: func() any {
					w.called(i, c)
					return do(c)
				}})
			}
			p.Threads = append(p.Threads, thread)
		}
		return p
	}, o)
}

// formatWord formats the value of a variable for a trace.
func formatWord(v uint64) string {
	switch {
	case v == ^uint64(0):
		return "evicted"
	case v>>63 == 1:
		return fmt.Sprintf("sealed, %x", v&^(1<<63))
	}
	return fmt.Sprintf("%x", v)
}
