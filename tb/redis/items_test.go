package redis

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// ledger is random items on one bucket, by a clock that may be set back.
type ledger struct {
	name   string
	limits []*layout // by which the bucket is called
	now    uint64    // µs
	undoes bool      // has undos, and then the clock is not set back
	grants []item    // that may be undone
}

// itemsAsLayout runs commands with several random items each. After each command the bucket must be
// the one that layout.apply computes, which callers get their results from.
func itemsAsLayout(s *simulator) error {
	rng := rand.New(rand.NewPCG(4, 17))
	var all []*ledger
	for i := range 150 {
		b := &ledger{name: fmt.Sprint("ledger ", i), now: noon, undoes: i%2 == 0}
		for len(b.limits) == 0 || rng.IntN(3) == 0 {
			limit := perSecond(1+rng.IntN(6), 1)
			switch rng.IntN(6) {
			case 0:
				limit = perSecond(1+rng.IntN(2000), 1+rng.Int64N(2000))
			case 1: // no clock shows when this one is full
				limit = tb.Limit{Capacity: 100, Tokens: 1, Per: 1 << 46 * time.Microsecond}
			}
			m, err := newLayout(limit, 0)
			if err != nil {
				return err
			}
			b.limits = append(b.limits, m)
		}
		all = append(all, b)
	}
	for range 25 {
		if err := s.compareLedgers(all, rng); err != nil {
			return err
		}
	}
	return nil
}

// compareLedgers sends a command to each bucket, and a look after it.
func (s *simulator) compareLedgers(all []*ledger, rng *rand.Rand) error {
	var commands []command
	for _, b := range all {
		m := b.limits[rng.IntN(len(b.limits))]
		const half = 500_000
		switch rng.IntN(8) {
		case 0:
			if !b.undoes {
				b.now -= half * uint64(rng.IntN(4))
			}
		case 1:
			b.now += rng.Uint64N(10 * half)
		case 2, 3, 4:
			b.now += half * uint64(rng.IntN(6))
		}
		var items []item
		for range 1 + rng.IntN(4) {
			items = append(items, b.item(m, rng))
		}
		look := m.part(b.name, item{kind: kindLook})
		commands = append(commands, command{now: b.now, parts: []part{m.part(b.name, items...)}},
			command{now: b.now, parts: []part{look}})
	}
	replies, err := s.runEach(commands)
	if err != nil {
		return err
	}
	for i, b := range all {
		p := commands[2*i].parts[0]
		var states [2]state
		for j, r := range replies[2*i : 2*i+2] {
			found, failure := r.bucket(0)
			if failure != nil {
				return failure
			}
			states[j] = p.layout.found(found, r.now)
		}
		got, want := states[0], states[1]
		for j := range p.items {
			if got.deficit == 0 { // a bucket that is full may begin anew, also with its changes
				b.grants = nil
			}
			before := got
			if p.layout.apply(&got, &p.items[j]).Allowed {
				b.grants = append(b.grants, undoOf(before, p.items[j].units))
			}
		}
		switch {
		case want.lacked > p.layout.capacity: // in debt, only the deficit counts
			got.was, got.lacked = want.was, want.lacked
		case got.deficit == 0 && want == newState(b.now, 0, b.now): // the key has expired
			got = want
		}
		if got != want {
			return fmt.Errorf("%s, limit %+v, items %+v on %+v: %+v, and the script has %+v",
				b.name, p.layout.limit, p.items, states[0], got, want)
		}
	}
	return nil
}

// item returns a random item. Many are at an edge: whole and half tokens.
func (b *ledger) item(m *layout, rng *rand.Rand) item {
	half := m.scale/2 + m.scale%2
	amount := func() uint64 { return half * (1 + rng.Uint64N(4*m.capacity/m.scale)) }
	switch k := kind(rng.IntN(int(kindReset) + 2)); k {
	case kindReserve:
		debt, within := uint64(deepest), tb.Never
		if rng.IntN(2) == 0 {
			debt = amount() - half
		}
		if rng.IntN(2) == 0 {
			within = time.Second / 2 * time.Duration(rng.IntN(10))
		}
		return reservation(amount(), debt, within)
	case kindUndo:
		if n := len(b.grants); n > 0 && b.undoes {
			return b.grants[n-1-rng.IntN(min(n, 3))]
		}
	case kindReset:
		if rng.IntN(4) == 0 {
			return item{kind: kindReset}
		}
	case kindLook:
		return item{kind: kindLook, units: amount()}
	case kindGiveBack, kindCharge:
		return item{kind: k, units: amount()}
	}
	return item{units: amount()}
}
