package redis

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// ledger is random items on one bucket, by a clock that may be set back.
type ledger struct {
	name    string
	limits  []*layout // by which the bucket is called
	now     uint64    // µs
	half    uint64    // µs; half of the longest time to a token, as a rule
	undoes  bool      // has undos, and then the clock is not set back
	grants  []item    // that may be undone
	expired int       // how often the bucket was full and had no key
}

// newLedgers returns ledgers with some of the limits that a function returns.
func newLedgers(rng *rand.Rand, half uint64, limit func() tb.Limit) (all []*ledger) {
	for i := range 150 {
		b := &ledger{name: fmt.Sprint("ledger ", i), now: noon, half: half, undoes: i%2 == 0}
		for len(b.limits) == 0 || rng.IntN(3) == 0 {
			b.limits = append(b.limits, layoutOf(limit()))
		}
		all = append(all, b)
	}
	return all
}

// itemsAsLayout runs commands with several random items each. After each command the bucket must be
// the one that layout.apply computes, which callers get their results from.
func itemsAsLayout(s *simulator) error {
	rng := rand.New(rand.NewPCG(4, 17))
	all := newLedgers(rng, 500_000, func() tb.Limit {
		switch rng.IntN(6) {
		case 0:
			return perSecond(1+rng.IntN(2000), 1+rng.Int64N(2000))
		case 1: // no clock shows when this one is full
			return tb.Limit{Capacity: 100, Tokens: 1, Per: 1 << 46 * time.Microsecond}
		}
		return perSecond(1+rng.IntN(6), 1)
	})
	for range 50 {
		if err := s.compareLedgers(all, rng); err != nil {
			return err
		}
	}
	return nil
}

func (s *simulator) compareLedgers(all []*ledger, rng *rand.Rand) error {
	var commands, looks []command
	for _, b := range all {
		m, half := b.limits[rng.IntN(len(b.limits))], b.half
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
		commands = append(commands, command{now: b.now, parts: []part{m.part(b.name, items...)}})
		looks = append(looks, command{now: b.now, parts: []part{look}})
	}
	replies, err := s.runEach(commands)
	if err != nil {
		return err
	}
	later, err := s.runEach(looks)
	if err != nil {
		return err
	}
	for i, b := range all {
		p := commands[i].parts[0]
		var states [2]state
		for j, r := range []reply{replies[i], later[i]} {
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
		got = p.layout.at(got, want.now)
		switch {
		case got.change == states[0].now && (want.change == want.now || want.change == 0):
			got = want // converted in the reply only
		case want.lacked > p.layout.capacity: // in debt, only the deficit counts
			got.was, got.lacked = want.was, want.lacked
		case got.deficit == 0 && want == newState(want.now, 0, want.now): // the key has expired
			got = want
			b.expired++
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
	switch k := kind(rng.IntN(int(kindHold) + 2)); k {
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
	case kindKeep:
		keeps := item{kind: kindKeep, units: amount(), keep: amount() - half}
		if rng.IntN(2) == 0 {
			keeps.hold = rng.Uint64N(6 * b.half)
		}
		return keeps
	case kindHold:
		return item{kind: kindHold, hold: b.half * rng.Uint64N(8)}
	}
	return item{units: amount()}
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
	m := layoutOf(limit)
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

// A lower limit locks no key out: RetryAfter is the time of the new limit.
func loweredLimit(s *simulator) error {
	for _, tt := range []struct {
		old, limit tb.Limit
		tokens     int
		want       tb.Decision
	}{
		{tb.Limit{Capacity: 1000, Tokens: 1000, Per: time.Hour},
			tb.Limit{Capacity: 10, Tokens: 10, Per: time.Hour}, 1000, refused(6*time.Minute, 0)},
		{tb.Limit{Capacity: 10_000, Tokens: 10_000, Per: 24 * time.Hour},
			tb.Limit{Capacity: 5, Tokens: 5, Per: time.Minute}, 10_000, refused(12*time.Second, 0)},
		{perSecond(100, 1), perSecond(5, 1), 20, granted(4)},
		{perSecond(100, 1), perSecond(200, 1), 20, granted(79)},
		{perSecond(10, 1), perSecond(1000, 1), 4, granted(5)}, // another scale
		{perSecond(1000, 1), perSecond(10, 1), 994, granted(5)},
		{perSecond(838_861, 1), perSecond(8_388_610, 10), 1, granted(838_859)}, // as many units
	} {
		const midnight = 1_750_032_000_000_000 // the units of all limits come then
		b := s.bucket("lowered")
		b.take(tt.old, midnight, tt.tokens)
		b.want(tt.limit, midnight, 1, tt.want)
		if retry := uint64(tt.want.RetryAfter.Microseconds()); retry > 0 {
			b.want(tt.limit, midnight+retry-1, 1, refused(1000, 0))
			b.want(tt.limit, midnight+retry, 1, granted(0))
		}
		if b.err != nil {
			return b.err
		}
	}
	return nil
}

// The key of a bucket that is full under its limit stays as long as under the limits before.
func convertedKeyIsKept(s *simulator) error {
	b := s.bucket("kept")
	large, small := perSecond(100, 1), perSecond(10, 1)
	b.want(large, noon, 50, granted(50))
	b.want(small, noon, 1, granted(9))
	b.want(large, noon+49_000_000, 100, refused(90*time.Second, 10))
	b.fill()
	b.want(large, noon, 50, granted(50))
	b.want(small, noon, 11, refused(tb.Never, 10)) // full
	b.want(large, noon+50_000_000, 100, refused(90*time.Second, 10))
	return b.err
}

// An undo gives nothing to a bucket that has been converted since, to and fro, however often.
func undoAfterAChange(s *simulator) error {
	b := s.bucket("undo")
	large, small := perSecond(100, 1), perSecond(10, 1)
	m := layoutOf(large)
	grant := func(now uint64, tokens int) (undo item) {
		e, before := b.apply(large, now, item{units: m.unitsOf(float64(tokens))})
		if !e.Allowed {
			b.errorf("%d tokens: %+v", tokens, e)
		}
		return undoOf(before, m.unitsOf(float64(tokens)))
	}
	for _, at := range []uint64{noon, noon + 1} { // of the later changes
		b.fill()
		first := grant(noon, 90)
		b.want(small, noon, 5, granted(5))
		second := grant(noon, 3)
		for range 300 { // more than a byte counts
			b.take(small, at, 10)
			b.take(large, at, 100)
			b.apply(large, at, first)
			b.apply(large, at, second)
		}
		b.want(large, at, 3, refused(time.Second-time.Duration(at-noon)*time.Microsecond, 2))
	}
	grant(noon+20_000_000, 17)
	b.apply(large, noon+20_000_000, grant(noon+20_000_000, 5))
	b.want(large, noon+20_000_000, 5, granted(0))
	return b.err
}
