package redis

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/unit"
	"github.com/seed-181794aa/ratelimit/tb"
)

// behaviours are what the script does beyond the results of tb/mutex. The tests of planted bugs run
// them too.
var behaviours = []struct {
	name  string
	check func(*simulator) error
}{
	{"DeadlineTakesNothing", deadlineTakesNothing},
	{"LookWritesNothing", lookWritesNothing},
	{"ClockSetBack", clockSetBack},
	{"LoweredLimit", loweredLimit},
	{"ConvertedKeyIsKept", convertedKeyIsKept},
	{"UndoAfterAChange", undoAfterAChange},
	{"ForeignValue", foreignValue},
	{"ResetFills", resetFills},
	{"SupplyIsExact", supplyIsExact},
	{"AllOrNone", allOrNone},
	{"GroupsAsMutex", groupsAsMutex},
	{"ItemsAsLayout", itemsAsLayout},
	{"Holds", holds},
	{"HoldClockSetBack", holdClockSetBack},
	{"GroupHolds", groupHolds},
}

func TestScript(t *testing.T) {
	s := startSimulator(t, bucketsText)
	for _, b := range behaviours {
		t.Run(b.name, func(t *testing.T) {
			if err := b.check(s); err != nil {
				t.Error(err)
			}
		})
	}
}

func deadlineTakesNothing(s *simulator) error {
	b := s.bucket("deadline")
	m := layoutOf(perSecond(10, 1))
	for _, it := range []item{
		{units: m.scale}, reservation(20*m.scale, deepest, tb.Never), {kind: kindHold, hold: 1000},
	} {
		late := command{now: noon + 1, parts: []part{m.part(b.key, it)}, deadline: noon}
		if r, err := s.runEach([]command{late}); err != nil || r[0].now != noon+1 {
			b.errorf("after the deadline: %+v, %w", r, err)
		}
		if v, _ := b.value(); v != "" {
			b.errorf("after the deadline, the value is %q", v)
		}
	}
	inTime := command{now: noon, parts: []part{m.part(b.key, item{units: m.scale})}, deadline: noon}
	if _, err := s.runEach([]command{inTime}); err != nil {
		return err
	}
	if v, _ := b.value(); len(v) != 28 {
		b.errorf("at the deadline, the value is %q", v)
	}
	small := layoutOf(perSecond(5, 1))
	before, _ := b.value()
	late := command{now: noon + 1, parts: []part{small.part(b.key, item{units: 5 * small.scale})},
		deadline: noon}
	if _, err := s.runEach([]command{late}); err != nil {
		return err
	}
	if v, _ := b.value(); v != before {
		b.errorf("after the deadline of a call by another limit, the value is %q", v)
	}
	// A settlement and a cancellation have no deadline.
	back := item{kind: kindGiveBack, units: m.scale / 2}
	later := command{now: noon + 1, parts: []part{m.part(b.key, back)}, deadline: noon}
	if _, err := s.runEach([]command{later}); err != nil {
		return err
	}
	b.want(perSecond(10, 1), noon+500_000, 10, granted(0))
	return b.err
}

// A look leaves a bucket as it is, also under another limit, unless the bucket lacks its units.
// Then the look is a refusal. That converts the bucket, and the next one writes nothing.
func lookWritesNothing(s *simulator) error {
	b := s.bucket("look")
	b.want(perSecond(10, 1), noon, 4, granted(6))
	before, _ := b.value()
	other := perSecond(5, 1)
	look := func(tokens uint64) item { return item{kind: kindLook, units: tokens * unit.MaxScale} }
	for _, it := range []item{look(0), look(5), look(6), {kind: kindUndo}} {
		b.apply(other, noon, it)
		if v, _ := b.value(); v != before {
			b.errorf("after %+v, the value is %q, and was %q", it, v, before)
		}
	}
	b.want(other, noon, 6, refused(tb.Never, 5))
	converted, _ := b.value()
	b.want(other, noon+1, 6, refused(tb.Never, 5))
	if v, _ := b.value(); v != converted || v == before {
		b.errorf("the value is %q, and was %q, and %q", v, before, converted)
	}
	b.fill()
	b.apply(other, noon, look(5)) // of a full bucket, which has no key
	if v, _ := b.value(); v != "" {
		b.errorf("after a look at a full bucket, the value is %q", v)
	}
	b.want(other, noon, 5, granted(0))
	b.apply(other, noon, reservation(unit.MaxScale, deepest, tb.Never))
	debt, _ := b.value()
	for i, it := range []item{look(0), look(1)} {
		b.apply(perSecond(3, 1), noon, it)
		if v, _ := b.value(); v == debt != (i == 0) {
			b.errorf("in debt, after %+v, the value is %q, and was %q", it, v, debt)
		}
	}
	return b.err
}

// A bucket waits for its own time for a second, and not for longer.
func clockSetBack(s *simulator) error {
	b := s.bucket("clock")
	limit := perSecond(10, 1)
	b.want(limit, noon, 10, granted(0))
	const back = noon - 1_000_000
	b.want(limit, back, 1, refused(2*time.Second, 0))
	b.want(limit, back-1, 1, refused(time.Second, 0))
	if _, expiry := b.value(); expiry != (back-1+10_000_000)/1000+1 {
		b.errorf("set back to noon-1000001 µs, the key expires at %d ms", expiry)
	}
	b.want(limit, back-1+999_999, 1, refused(time.Microsecond, 0))
	b.want(limit, back-1+1_000_000, 1, granted(0))
	b.want(limit, back-1+1_000_000, 1, refused(time.Second, 0))
	// The wait for the own time is by the limit of the call.
	b.fill()
	b.want(limit, noon, 10, granted(0))
	fast := perSecond(10, 5)
	wait := reservation(unit.MaxScale, deepest, 600*time.Millisecond) // a token, which takes 700 ms
	_, before := b.apply(fast, noon-500_000, wait)
	if _, after := b.apply(fast, noon-500_000, item{kind: kindLook}); after != before {
		b.errorf("after a refused reservation: %+v, want %+v", after, before)
	}
	return b.err
}

// A value that is not a bucket is an error of its own items only.
func foreignValue(s *simulator) error {
	ctx := context.Background()
	m := layoutOf(perSecond(10, 1))
	set := func(value string) error {
		never := "\x7f\xf0\x00\x00\x00\x00\x00\x00"
		return s.client.Do(ctx, s.client.B().Set().Key("foreign").Value(never+value).Build()).Error()
	}
	push := s.client.B().Arbitrary("LPUSH").Keys("list").Args("x").Build()
	if err := s.client.Do(ctx, push).Error(); err != nil {
		return err
	}
	for _, name := range []string{"foreign", "list"} {
		for _, value := range []string{
			"", "1750000000.123", strings.Repeat("x", 27), strings.Repeat("x", 29),
			strings.Repeat("x", 36),
		} {
			if err := set(value); err != nil {
				return err
			}
			b := s.bucket("proper")
			items := []item{
				{units: 1}, {kind: kindReserve, units: 1}, {kind: kindGiveBack, units: 1},
				{kind: kindCharge, units: 1}, {kind: kindUndo, units: 1},
			}
			for _, it := range items {
				other := m.part(b.key, item{units: m.scale})
				r, err := s.run(noon, 1, m.part(name, it), other)
				if err != nil {
					return err
				}
				if _, err := r.bucket(0); err == nil || err.Cause != CauseForeign {
					b.errorf("value %q: want a foreign value, got %w", value, err)
				}
				if _, err := r.bucket(1); err != nil {
					b.errorf("the other bucket: %w", err)
				}
			}
			b.want(perSecond(10, 1), noon, 5, granted(0))
			if b.err != nil {
				return b.err
			}
		}
	}
	return nil
}

// A reset removes a bucket, or another value, and the next item finds a full bucket.
func resetFills(s *simulator) error {
	m := layoutOf(perSecond(10, 1))
	b := s.bucket("reset")
	take := item{units: m.unitsOf(7)}
	for _, prepare := range []func(){
		func() { b.take(m.limit, noon, 7) },
		func() { b.apply(m.limit, noon, reservation(m.unitsOf(30), deepest, tb.Never)) },
		func() { // under another limit
			b.take(m.limit, noon, 1)
			b.take(perSecond(5, 1), noon, 1)
		},
		func() { // a value that is not a bucket
			set := b.client.B().Set().Key(b.key).Value("\x7f\xf0\x00\x00\x00\x00\x00\x00x").Build()
			if err := b.client.Do(context.Background(), set).Error(); err != nil {
				b.errorf("%w", err)
			}
		},
		func() {}, // a full bucket
	} {
		b.fill()
		prepare()
		reset := m.part(b.key, item{kind: kindReset}, take)
		r, err := b.run(noon, 1, reset)
		if err != nil {
			return err
		}
		if _, failure := r.bucket(0); failure != nil {
			b.errorf("%w", failure)
		}
		b.want(m.limit, noon, 3, granted(0))
		if v, _ := b.value(); len(v) != 28 || v[0] != m.header[0] {
			b.errorf("the value is %q", v)
		}
		prepare()
		if _, err := b.run(noon, 1, m.part(b.key, take, item{kind: kindReset})); err != nil {
			return err
		}
		if v, _ := b.value(); v != "" {
			b.errorf("after a call and a reset, the value is %q", v)
		}
	}
	return b.err
}

// All items are granted, or none. A refusal stores only conversions.
func allOrNone(s *simulator) error {
	m := layoutOf(perSecond(10, 1))
	large := layoutOf(perSecond(20, 1))
	first, second := s.bucket("first"), s.bucket("second")
	run := func(now uint64, units ...int) reply {
		r, err := s.run(now, 2, m.part(first.key, item{units: m.unitsOf(float64(units[0]))}),
			large.part(second.key, item{units: large.unitsOf(float64(units[1]))}))
		if err != nil {
			first.errorf("%w", err)
		}
		return r
	}
	run(noon, 4, 7)
	run(noon, 7, 1) // refused by the first
	run(noon, 1, 14)
	run(noon, 6, 13)
	first.want(perSecond(10, 1), noon, 1, refused(time.Second, 0))
	second.want(perSecond(20, 1), noon, 1, refused(time.Second, 0))
	run(noon+1, 1, 1)
	v, _ := first.value()
	if run(noon+5_000_000, 6, 1); first.err == nil {
		if w, _ := first.value(); v != w {
			first.errorf("a refusal wrote %q, and the value was %q", w, v)
		}
	}
	second.take(perSecond(30, 1), noon+5_000_000, 1)
	run(noon+5_000_000, 6, 1) // refused, and the second is converted
	if w, _ := second.value(); !strings.Contains(w, string(large.header[1:])) {
		second.errorf("the value is %q", w)
	}
	second.want(perSecond(20, 1), noon+5_000_000, 5, refused(time.Second, 4))
	r, err := s.runEach([]command{{
		now: noon + 5_000_000, group: 2, deadline: noon + 4_999_999,
		parts: []part{m.part(first.key, item{units: 1}), large.part(second.key, item{units: 1})},
	}})
	if err != nil || r[0].now != noon+5_000_000 {
		return fmt.Errorf("%+v, %w", r, err)
	}
	first.want(perSecond(10, 1), noon+5_000_000, 5, granted(0))
	for _, b := range []*bucket{first, second} {
		if b.err != nil {
			return b.err
		}
	}
	return nil
}

// supplyIsExact compares the supply of the script and of the client with math/big, with operands at
// the edges of their ranges.
func supplyIsExact(s *simulator) error {
	const loop = `
local reply, i = {}, 1
while i <= #ARGV[1] do
  local s, e, N, D
  s, e, N, D, i = struct.unpack('>dddd', ARGV[1], i)
  reply[#reply + 1] = string.format('%.0f', supplied(s, e, N, D))
end
return reply`
	arithmetic, _, _ := strings.Cut(s.script.text[len(simulation):], "local time")
	rng := rand.New(rand.NewPCG(15, 1))
	var arg []byte
	var want []string
	for len(want) < 6000 {
		d, n := int64(magnitude(rng, 1<<rateBits-1)), int64(magnitude(rng, 1<<rateBits-1))
		at, e := int64(magnitude(rng, 1<<53-1)), int64(magnitude(rng, 1<<53-1))
		switch rng.IntN(5) {
		case 0: // near the edges
			d = 1<<rateBits - int64(magnitude(rng, 1<<(rateBits-1)))
			n = d - int64(magnitude(rng, uint64(d-1)))
			e = 1<<rateBits - int64(magnitude(rng, 1<<(rateBits-1)))
		case 1: // one or both are small
			d, n = 1<<20+int64(magnitude(rng, 1<<30)), int64(magnitude(rng, 1<<26))
			e = int64(magnitude(rng, 1<<27))
		case 2: // the product is just below a power of two
			d, n = 1<<rateBits-int64(magnitude(rng, 1<<rateBits-1)), n|1<<20
			e = int64(math.MaxUint64 / uint64(n))
		case 3: // the upper word is the divisor
			if hi, _ := bits.Mul64(uint64(n), uint64(e)); hi > 0 && hi < 1<<rateBits {
				d = int64(hi)
			}
		}
		if rng.IntN(4) > 0 { // no rest: the quotient is just reached
			at += d - (at+e)%d
			if at >= 1<<53 {
				continue
			}
		}
		whole := func(x int64) *big.Int { // S(x)
			y := new(big.Int).Mul(big.NewInt(x), big.NewInt(n))
			return y.Quo(y, big.NewInt(d))
		}
		units := whole(at + e)
		units.Sub(units, whole(at))
		m := &layout{n: uint64(n), d: uint64(d)}
		got, most := m.supplied(uint64(at), uint64(e)), big.NewInt(maxSupply)
		if got != units.Uint64() && (got != maxSupply || units.Cmp(most) < 0) {
			return fmt.Errorf("%d/%d units a µs supply %d in %d µs after %d, want %v",
				n, d, got, e, at, units)
		}
		if units.BitLen() > rateBits { // the script is not exact
			continue
		}
		want = append(want, units.String())
		for _, x := range []int64{at, e, n, d} {
			arg = binary.BigEndian.AppendUint64(arg, math.Float64bits(float64(x)))
		}
	}
	got, err := s.client.Do(context.Background(), s.client.B().Eval().Script(arithmetic+loop).
		Numkeys(0).Arg(string(arg)).Build()).AsStrSlice()
	if err != nil {
		return err
	}
	for i, g := range got {
		if g != want[i] {
			return fmt.Errorf("supply %d is %s, want %s", i, g, want[i])
		}
	}
	return nil
}
