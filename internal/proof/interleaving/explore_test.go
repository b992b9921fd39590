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
	oneBucket bool // cas.Bucket
	undone    bool // the order of eviction may lag behind what was undone
	full      bool // a full bucket is in the table as long as keys are evicted
	moves     bool // a bucket to which a charge is given back may have moved
	deep      bool // every schedule is followed even if maps are tiny
	short     bool // part of a short test
	before    []ask
	threads   [][]ask
}

// asks are the calls.
const (
	take = iota // AllowAt
	one         // Allow
	look        // Peek
	wipe        // Reset
	all         // TakeAll
)

type ask struct {
	op  int
	key string
	at  float64 // the reading, in seconds
	n   int
}

func (c ask) String() string {
	switch c.op {
	case take:
		return fmt.Sprintf("take %d of %s at %vs", c.n, c.key, c.at)
	case one:
		return fmt.Sprintf("take 1 of %s at %vs", c.key, c.at)
	case look:
		return fmt.Sprintf("peek %s at %vs", c.key, c.at)
	case all:
		return fmt.Sprintf("take %d of each of %s at %vs", c.n, c.key, c.at)
	}
	return "reset " + c.key
}

// lapse is a reading at which the delta of a bucket of time 0 has run out.
const lapse = 300_000

func instant(at float64) time.Time {
	return time.Unix(0, 0).Add(time.Duration(at * float64(time.Second)))
}

// capacity is that of all buckets, in tokens, of which they get one a second.
const capacity = 10

func (*scenario) rate() tb.Limit {
	return tb.Limit{Capacity: capacity, Tokens: 1, Per: time.Second}
}

func (s *scenario) options(now *time.Time) []tb.Option {
	return []tb.Option{
		tb.WithClock(func() time.Time { return *now }),
		tb.WithMaxKeys(max(s.maxKeys, 1)), tb.WithOverflow(s.overflow),
	}
}

// explore runs a variant of the code through the schedules of s.
func (s scenario) explore(variant string, m *oracle, o modelcheck.Options) modelcheck.Result {
	return modelcheck.Explore(func() modelcheck.Program {
		now := new(time.Time)
		l, err := registry.Variants[variant](registry.Config{
			Limit: s.rate(), Options: s.options(now),
			Keys: slices.Concat(s.keys(), newKeys), Collide: s.collide, OneBucket: s.oneBucket,
		})
		if err != nil {
			panic(err)
		}
		y := newTally(s.rate(), l)
		w := newWatch(l, len(s.threads))
		do := func(c ask) any {
			y.begins(c)
			a := c.on(l, now)
			y.returns(c, a)
			return a
		}
		for _, c := range s.before {
			do(c)
		}
		p := modelcheck.Program{
			Invariant: func() error {
				w.look()
				return errors.Join(l.CheckSize(), y.within())
			},
			Returned: w.returns,
			Memory:   w.memory,
			Format:   word,
			Final: func(history [][]modelcheck.Returned) error {
				if err := errors.Join(l.CheckTable(s.undone), y.settled()); err != nil {
					return err
				}
				if n := l.Stats().EvictedInDebt; n > 0 && s.full {
					return fmt.Errorf("%d debts are forgiven, and a full bucket is in the table", n)
				}
				return m.judge(history, s.aftermath(l, now))
			},
		}
		for i, asks := range s.threads {
			var calls []modelcheck.Call
			for _, c := range asks {
				calls = append(calls, modelcheck.Call{Name: c, Do: func() any {
					w.begins(i, c)
					return do(c)
				}})
			}
			p.Threads = append(p.Threads, calls)
		}
		return p
	}, o)
}

// word formats what a variable holds, for a trace.
func word(v uint64) string {
	switch {
	case v == ^uint64(0):
		return "evicted"
	case v>>63 == 1:
		return fmt.Sprintf("sealed, %x", v&^(1<<63))
	}
	return fmt.Sprintf("%x", v)
}
