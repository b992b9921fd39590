package cas

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"sync/atomic"
	"testing"
)

// FuzzInherit changes the capacity twice. It compares the state that a bucket has after each change
// with integers of any size. The bucket may be in debt, and its time may be after the change.
func FuzzInherit(f *testing.F) {
	for i, old := range edgeLimits {
		for j, l := range edgeLimits {
			f.Add(uint64(old.Capacity-1), uint64(old.Tokens-1), uint64(old.Per-1),
				uint64(l.Capacity-1), uint64(l.Tokens-1), uint64(l.Per-1),
				uint64(i)<<58, uint64(1)<<60, uint64(i*97+j+1)*0x9e3779b97f4a7c15, byte(i+j))
		}
	}
	f.Fuzz(inherits)
}

func TestInheritWithRandomLimits(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	number := func() uint64 { return rng.Uint64() >> rng.IntN(64) }
	for range 5000 {
		inherits(t, number(), number(), number(), number(), number(), number(),
			rng.Uint64(), number(), rng.Uint64(), byte(rng.Uint32()))
	}
}

func inherits(t *testing.T, capacity, tokens, per, nextCapacity, nextTokens, nextPer,
	own, at, word uint64, kind byte,
) {
	l := anyLimit(capacity, tokens, per)
	next := anyLimit(nextCapacity, nextTokens, nextPer)
	old := newLayout(l, 0, firstInstant(l))
	if kind&1 > 0 { // a tier
		old = newLayout(l, int(kind)<<8, 1<<62)
	}
	at = max(at%(1<<62), old.supply.from)
	first := changed(old, l, at) // so that S does not begin at instant 0
	c := anyCell(first, own%(1<<63), word, kind)
	second := changed(first, next, at)
	s := &limits{}
	if kind&1 > 0 {
		s.tiers = make([]atomic.Pointer[layout], int(kind)<<8+1)
	}
	s.of(c).Store(second)
	has := first.balanceOf(c.base, c.word.Load())
	want := inheritedState(first, second, stateOf(has), at)
	if got := stateOf(s.view(second, c, c.word.Load()&^sealBit, at)); got.String() != want.String() {
		t.Fatalf("%+v, then %+v at %d: cell %d, %x becomes %v, want %v",
			l, next, at, c.base, c.word.Load(), got, want)
	}
}

// anyCell returns a cell of m whose base is at the instant own, with any delta and deficit. Some
// are in debt, and some are sealed.
func anyCell(m *layout, own, word uint64, kind byte) *cell {
	delta := word >> (m.deficitBits + 1)
	if kind&2 > 0 {
		delta %= 1 << 20
	}
	deficit := word % (m.capacity + 1)
	if kind&4 > 0 {
		deficit = m.capacity + 1
	}
	w := m.pack(delta, deficit)
	if kind&8 > 0 {
		w |= sealBit
	}
	return newCell(content{m.owner, blockOf(m.supply.at(own)), w})
}

// exactState is the state of a bucket in integers of any size: its own time in units of supply, and
// its deficit, which is the capacity and one unit if the bucket is in debt.
type exactState struct{ own, deficit *big.Int }

func (s exactState) String() string { return fmt.Sprintf("deficit %v at %v", s.deficit, s.own) }

func stateOf(b balance) exactState {
	return exactState{b.time.integer(), new(big.Int).SetUint64(b.deficit)}
}

// inheritedState returns what layout.inherit returns, by its definition.
func inheritedState(old, m *layout, s exactState, at uint64) exactState {
	number := func(x uint64) *big.Int { return new(big.Int).SetUint64(x) }
	convert := func(units *big.Int, up bool) *big.Int {
		units = new(big.Int).Mul(units, number(m.scale))
		if up {
			units.Add(units, number(old.scale-1))
		}
		return units.Quo(units, number(old.scale))
	}
	now := suppliedBy(old, at)
	ahead := new(big.Int).Sub(s.own, now)
	inDebt := s.deficit.Cmp(number(old.capacity)) > 0
	if inDebt && ahead.Sign() >= 0 {
		debt := ahead.Add(ahead, big.NewInt(1))
		if most := number(deepestDebt * old.scale); debt.Cmp(most) > 0 {
			debt = most
		}
		own := new(big.Int).Add(suppliedFrom(m, at), convert(debt, true))
		return exactState{own.Sub(own, big.NewInt(1)), number(m.capacity + 1)}
	}
	deficit := s.deficit
	if ahead.Sign() <= 0 {
		if deficit = new(big.Int).Add(deficit, ahead); deficit.Sign() < 0 {
			deficit = new(big.Int)
		}
	} else {
		at = math.MaxUint64 - 1
		if then := reaches(old, new(big.Int).Add(s.own, big.NewInt(1))); then.IsUint64() {
			at = then.Uint64() - 1
		}
	}
	tokens := convert(new(big.Int).Sub(number(old.capacity), deficit), false)
	missing := new(big.Int).Sub(number(m.capacity), tokens)
	if missing.Sign() < 0 {
		missing = new(big.Int)
	}
	return exactState{suppliedFrom(m, at), missing}
}

// suppliedFrom returns S(at), and the first position of the era at its beginning: the fraction of a
// unit that the era before has supplied goes to the bucket.
func suppliedFrom(m *layout, at uint64) *big.Int {
	if at <= m.begin {
		return new(big.Int)
	}
	return suppliedBy(m, at)
}

// reaches returns the first instant at which m has supplied x.
func reaches(m *layout, x *big.Int) *big.Int {
	rate := new(big.Int).Mul(big.NewInt(m.limit.Tokens), new(big.Int).SetUint64(m.scale))
	x = new(big.Int).Mul(x, big.NewInt(int64(m.limit.Per)))
	x.Add(x, rate).Sub(x, big.NewInt(1)).Quo(x, rate)
	return x.Add(x, new(big.Int).SetUint64(m.supply.from))
}
