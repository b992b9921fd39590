package cas

import (
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// anyLimit makes a limit of any three numbers.
func anyLimit(capacity, tokens, per uint64) tb.Limit {
	per = 1 + per%math.MaxInt64
	return tb.Limit{
		Capacity: 1 + int(capacity%tb.MaxCapacity),
		Tokens:   1 + int64(tokens%per),
		Per:      time.Duration(per),
	}
}

// FuzzSupply compares S and its inverse with exact divisions, at a reading and around
// the multiple of the period before it.
func FuzzSupply(f *testing.F) {
	for _, l := range edgeLimits {
		for _, t := range []uint64{0, 1, 1_000_000_007, math.MaxInt64, math.MaxUint64} {
			f.Add(uint64(l.Capacity-1), uint64(l.Tokens-1), uint64(l.Per-1), t)
		}
	}
	f.Fuzz(func(t *testing.T, capacity, tokens, per, reading uint64) {
		l := anyLimit(capacity, tokens, per)
		m := newLayout(l)
		period := reading / uint64(l.Per) * uint64(l.Per)
		for _, at := range []uint64{reading, period - 1, period, period + 1} {
			want := supplyAt(l, m.scale, at)
			if got := wide(m.supply.unitsBy(at)); got.Cmp(want) != 0 {
				t.Fatalf("limit %+v: S(%d) = %v, want %v", l, at, got, want)
			}
			p := m.positionAt(at)
			if got := wide(m.unitsAfter(p.blocks, p.rest)); got.Cmp(want) != 0 {
				t.Fatalf("limit %+v: %v comes back from blocks as %v", l, want, got)
			}
			further := new(big.Int).Add(want, new(big.Int).SetUint64(reading))
			further.Sub(further, new(big.Int).SetUint64(p.rest))
			if got := wide(m.unitsAfter(p.blocks, reading)); got.Cmp(further) != 0 {
				t.Fatalf("limit %+v: %d units after %d blocks are %v, want %v",
					l, reading, p.blocks, got, further)
			}
			for d := int64(-1); d <= 1; d++ {
				checkTimeOf(t, l, &m, new(big.Int).Add(want, big.NewInt(d)))
			}
			for _, ns := range []uint64{1, 1 << 10, 1 << 20} { // at the end, that is beyond it
				later := new(big.Int).SetUint64(ns * max(1, m.supply.rate.whole))
				checkTimeOf(t, l, &m, later.Add(later, want))
			}
			checkTimeOf(t, l, &m, new(big.Int).Lsh(want, 1))
		}
	})
}

// checkTimeOf checks that timeOf returns the first instant at which S is x.
func checkTimeOf(t *testing.T, l tb.Limit, m *layout, x *big.Int) {
	if x.Sign() <= 0 {
		return
	}
	got, ok := m.supply.timeOf(words(x))
	if beyond := x.Cmp(supplyAt(l, m.scale, math.MaxUint64)) > 0; ok == beyond {
		t.Fatalf("limit %+v: timeOf(%v) = %d, %v", l, x, got, ok)
	}
	if !ok {
		return
	}
	if supplyAt(l, m.scale, got).Cmp(x) < 0 || supplyAt(l, m.scale, got-1).Cmp(x) >= 0 {
		t.Fatalf("limit %+v: S reaches %v at %d, which is not the first", l, x, got)
	}
}

// FuzzWord compares the step, and what happens to a word beside it, with integers
// that have no width.
func FuzzWord(f *testing.F) {
	for _, seed := range [][7]uint64{
		{9, 0, 1e9 - 1, 0, 0, 1 << 62, 1e9},
		{1<<30 - 1, 1e6, 1e6, 1 << 33, 1 << 31, 0, 1},
		{0, 0, math.MaxInt64 - 1, 7, 3, 1 << 63, 2},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3], seed[4], seed[5], seed[6])
	}
	f.Fuzz(func(t *testing.T, capacity, tokens, per, s, lacks, reading, price uint64) {
		l := anyLimit(capacity, tokens, per)
		m := newLayout(l)
		delta := s & (1<<(63-m.deficitBits) - 1)
		deficit := lacks % (m.capacity + 1)
		cost := 1 + price%m.capacity

		word := m.pack(delta, deficit)
		if d, c := m.unpack(word); d != delta || c != deficit || isSealed(word) || !m.fits(delta) {
			t.Fatalf("limit %+v: %d, %d came back as %d, %d", l, delta, deficit, d, c)
		}
		var b cell
		base := m.positionAt(epoch(l)).blocks
		b.init(base, word)

		// The time is delta, or the reading if that is later. The deficit shrinks by the
		// supply in between, to 0 at most, and grows by the cost.
		origin := wide(m.unitsAfter(base, 0))
		own := new(big.Int).Add(origin, new(big.Int).SetUint64(delta))
		now := supplyAt(l, m.scale, reading)
		if now.Cmp(own) < 0 {
			now = own
		}
		gain := new(big.Int).Sub(now, own)
		left := new(big.Int).Sub(new(big.Int).SetUint64(deficit), gain)
		if left.Sign() < 0 {
			left.SetUint64(0)
		}
		charged := new(big.Int).Add(left, new(big.Int).SetUint64(cost))
		granted := charged.Cmp(new(big.Int).SetUint64(m.capacity)) <= 0
		fits := new(big.Int).Sub(now, origin).BitLen() <= int(63-m.deficitBits)

		d, stored, verdict := b.take(&m, reading, cost)
		switch {
		case granted && !fits:
			if verdict != moved || b.word.Load() != word|sealBit {
				t.Fatalf("limit %+v: verdict %d, word %x, want it sealed", l, verdict, b.word.Load())
			}
		case verdict != decided || d.Allowed != granted:
			t.Fatalf("limit %+v: %+v, verdict %d, want granted %t", l, d, verdict, granted)
		case !granted:
			checkRefusal(t, l, &m, d, reading, now, left, cost)
		default:
			checkGrant(t, l, &m, d, stored, new(big.Int).Sub(now, origin), charged)
			b.giveBack(&m, stored, cost)
			if got := wide(m.unitsAfter(b.base, b.word.Load()>>m.deficitBits)); got.Cmp(now) != 0 ||
				b.word.Load()&m.deficitMask != left.Uint64() {
				t.Fatalf("limit %+v: undone: %x, want the deficit %v at %v", l, b.word.Load(), left, now)
			}
		}
		if granted {
			checkSuccessor(t, l, &m, &b, reading, cost, now, charged)
		}
	})
}

func checkGrant(
	t *testing.T, l tb.Limit, m *layout, d tb.Decision, word uint64, delta, lacks *big.Int,
) {
	if got, deficit := m.unpack(word); got != delta.Uint64() || deficit != lacks.Uint64() {
		t.Fatalf("limit %+v: left %d, %d, want %v, %v", l, got, deficit, delta, lacks)
	}
	if want := (m.capacity - lacks.Uint64()) / m.scale; d.Remaining != int(want) {
		t.Fatalf("limit %+v: %d remaining, want %d", l, d.Remaining, want)
	}
}

func checkRefusal(
	t *testing.T, l tb.Limit, m *layout, d tb.Decision, reading uint64,
	now, left *big.Int, cost uint64,
) {
	if want := (m.capacity - left.Uint64()) / m.scale; d.Remaining != int(want) {
		t.Fatalf("limit %+v: %d remaining, want %d", l, d.Remaining, want)
	}
	if d.RetryAfter == tb.Never {
		return
	}
	// At the end of the wait S has reached what is missing, and not before.
	missing := left.Uint64() + cost - m.capacity
	x := new(big.Int).Add(now, new(big.Int).SetUint64(missing))
	then := reading + uint64(d.RetryAfter)
	if supplyAt(l, m.scale, then).Cmp(x) < 0 || supplyAt(l, m.scale, then-1).Cmp(x) >= 0 {
		t.Fatalf("limit %+v: wait %d from %d for %d units is not exact",
			l, d.RetryAfter, reading, missing)
	}
}

// checkSuccessor seals b and checks that its successor by a grant at the given reading has
// the time and the deficit that b would have.
func checkSuccessor(
	t *testing.T, l tb.Limit, m *layout, b *cell, reading, cost uint64, now, lacks *big.Int,
) {
	b.word.Store(b.word.Load() | sealBit)
	base, next, d := b.successor(m, reading, cost)
	if isSealed(next) || !d.Allowed {
		t.Fatalf("limit %+v: %x, %+v", l, next, d)
	}
	delta, deficit := m.unpack(next)
	if got := wide(m.unitsAfter(base, delta)); got.Cmp(now) != 0 || deficit != lacks.Uint64() {
		t.Fatalf("limit %+v: the successor is at %v and lacks %d, want %v and %v",
			l, got, deficit, now, lacks)
	}
}
