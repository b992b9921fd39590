package interleaving

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/interleave"
	"github.com/seed-181794aa/ratelimit/internal/interleave/subject"
	"github.com/seed-181794aa/ratelimit/tb"
)

// scenario is a program for the explorer: calls by several threads on a small table.
type scenario struct {
	name      string
	maxKeys   int
	overflow  tb.Overflow
	shards    int
	oneBucket bool // cas.Bucket
	unordered bool // the state at the end may differ from that of a table of one shard
	undone    bool // the order of eviction may lag behind what was undone
	moves     bool // a bucket to which a charge is given back may have moved
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

// rate is that of all scenarios: ten tokens, one a second.
func (*scenario) rate() tb.Limit { return tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second} }

func (s *scenario) options(now *time.Time) []tb.Option {
	return []tb.Option{
		tb.WithClock(func() time.Time { return *now }),
		tb.WithMaxKeys(max(s.maxKeys, 1)), tb.WithOverflow(s.overflow),
	}
}

// explore runs a variant of the code through the schedules of s.
func (s scenario) explore(variant string, m *oracle, o interleave.Options) interleave.Result {
	return interleave.Explore(func() interleave.Program {
		now := new(time.Time)
		l, err := subject.Variants[variant](subject.Config{
			Limit: s.rate(), Options: s.options(now), Shards: s.shards, OneBucket: s.oneBucket,
		})
		if err != nil {
			panic(err)
		}
		y := newTally(s.rate(), l)
		do := func(c ask) any {
			y.begins(c)
			a := c.on(l, now)
			y.returns(c, a)
			return a
		}
		for _, c := range s.before {
			do(c)
		}
		p := interleave.Program{
			Invariant: func() error { return errors.Join(l.Bounded(), y.within()) },
			Returned:  promises,
			Format:    word,
			Final: func(history [][]interleave.Returned) error {
				if err := errors.Join(l.Agrees(s.undone), y.settled()); err != nil {
					return err
				}
				return m.judge(history, s.aftermath(l, now))
			},
		}
		for _, asks := range s.threads {
			var calls []interleave.Call
			for _, c := range asks {
				calls = append(calls, interleave.Call{Name: c, Do: func() any { return do(c) }})
			}
			p.Threads = append(p.Threads, calls)
		}
		return p
	}, o)
}

// promises checks C4 and C6 on the steps of a call.
func promises(r interleave.Returned) error {
	a, c := r.Result.(answered), r.Name.(ask)
	var locked, wrote, tried, sealed, looked, missed bool
	for _, s := range r.Steps {
		switch s.Op {
		case interleave.MapLoad:
			looked, missed = true, missed || s.Result == 0
		case interleave.Lock, interleave.ComputeBegin, interleave.MapStore:
			locked = true
		case interleave.CompareAndSwap:
			tried = true
		case interleave.Load:
			sealed = sealed || s.Result>>63 == 1
		}
		wrote = wrote || s.Wrote()
	}
	switch {
	case !looked || missed || sealed || a.failed:
		return nil // a new key, or a bucket that has to be moved or was evicted
	case locked:
		return errors.New("C6: a call on a key in the table took a lock")
	case !a.Allowed && wrote && c.op != all: // which may have lost a race
		return errors.New("C4: a refused call on a key in the table wrote")
	case !a.Allowed && tried && r.Alone && !c.undoes():
		return errors.New("C4: a refused call on a key in the table did not only load")
	}
	return nil
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
