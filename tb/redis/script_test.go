package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/tb"
)

// behaviours are what the scripts do beyond the decisions of tb/mutex. The tests of planted bugs
// run them too.
var behaviours = []struct {
	name  string
	check func(*simulator) error
}{
	{"DeadlineTakesNothing", deadlineTakesNothing},
	{"RefusalWritesNothing", refusalWritesNothing},
	{"ClockSetBack", clockSetBack},
	{"ClocksOfClientsDiffer", clocksOfClientsDiffer},
	{"KeyExpiresWhenFull", keyExpiresWhenFull},
	{"DeficitOfAnotherScale", deficitOfAnotherScale},
	{"DeficitOfAGreaterCapacity", deficitOfAGreaterCapacity},
	{"AlternatingCapacitiesGainNothing", alternatingCapacitiesGainNothing},
	{"ForeignValueIsAnError", foreignValueIsAnError},
	{"WideDivisionIsExact", wideDivisionIsExact},
	{"TakeEachAsTake", takeEachAsTake},
	{"TakeEachWritesNothingWithAnError", takeEachError},
	{"TakeAll", takeAllScript},
	{"GiveBack", giveBackScript},
	{"ChargesAsMutex", chargesAsMutex},
}

func TestScript(t *testing.T) {
	s := startSimulator(t, shipped)
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
	m, err := s.layout(perSecond(10, 1))
	if err != nil {
		return err
	}
	at := func(now uint64) rueidis.RedisMessage {
		costs := []uint64{m.scale}
		r, err := s.run(&m, b.key, []step{{now: now, costs: costs, deadline: noon}})
		if err != nil {
			b.errorf("%w", err)
			return rueidis.RedisMessage{}
		}
		return r[0]
	}
	late := at(noon + 1)
	if t, err := late.AsInt64(); err != nil || t != noon+1 {
		b.errorf("1 µs after the deadline: %v, %v, want the time", t, err)
	}
	if v, _ := b.value(); v != "" {
		b.errorf("after the deadline, the value is %q", v)
	}
	inTime := at(noon)
	if v, err := inTime.ToString(); err != nil || len(v) != 12 {
		b.errorf("at the deadline: %q, %v, want a grant", v, err)
	}
	return b.err
}

func refusalWritesNothing(s *simulator) error {
	b := s.bucket("refusal")
	limit := perSecond(10, 1)
	b.want(limit, noon, 10, granted(0))
	before, expiry := b.value()
	b.want(limit, noon+2_500_000, 3, refused(500*time.Millisecond, 2))
	b.want(limit, noon-1_000_000, 1, refused(2*time.Second, 0))
	b.want(limit, noon+2_500_000, 11, refused(tb.Never, 2))
	if after, e := b.value(); after != before || e != expiry {
		b.errorf("the value is %q until %d, and was %q until %d", after, e, before, expiry)
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
	return b.err
}

// A bucket waits for the latest clock of a client. So two clients whose clocks differ by more than
// a second do not refill it in turn.
func clocksOfClientsDiffer(s *simulator) error {
	b := s.bucket("clients")
	m, err := s.layout(perSecond(10, 1))
	if err != nil {
		return err
	}
	for i, tt := range []struct {
		now    uint64
		tokens int
		want   tb.Decision
		expiry uint64 // ms
	}{
		{noon + 5_000_000, 6, granted(4), noon/1000 + 5000 + 6000 + 1000 + 1},
		{noon, 3, granted(1), noon/1000 + 9000 + 1000 + 1},
		{noon, 2, refused(6*time.Second, 1), noon/1000 + 9000 + 1000 + 1},
		{noon + 5_000_000, 2, refused(time.Second, 1), noon/1000 + 9000 + 1000 + 1},
	} {
		costs := []uint64{m.unitsOf(tt.tokens)}
		all, err := s.states(&m, b.key, []step{
			{now: tt.now, costs: costs, deadline: noDeadline, clientClock: true},
		})
		if err != nil {
			return err
		}
		if got := m.take(&all[0], costs[0]); got != tt.want {
			b.errorf("call %d: %+v, want %+v", i, got, tt.want)
		}
		if _, expiry := b.value(); expiry != tt.expiry {
			b.errorf("call %d: the key expires at %d ms, want %d", i, expiry, tt.expiry)
		}
	}
	return b.err
}

func keyExpiresWhenFull(s *simulator) error {
	for _, tt := range []struct {
		limit  tb.Limit
		tokens int
		full   uint64 // µs after noon, rounded up
	}{
		{perSecond(10, 1), 1, 1_000_000},
		{perSecond(10, 1), 7, 7_000_000},
		{perSecond(10, 3), 1, 333_334},
		{perSecond(1000, 1_000_000), 1, 1},
		{perSecond(1000, 1_000_000), 999, 999},
		{perSecond(1000, 1_000_000), 1000, 1000},
		{tb.Limit{Capacity: 3, Tokens: 7, Per: 1_000_000_007 * time.Microsecond}, 1, 142_857_144},
	} {
		b := s.bucket("expiry")
		b.take(tt.limit, noon, tt.tokens)
		if _, expiry := b.value(); expiry*1000 <= noon+tt.full || (expiry-1)*1000 > noon+tt.full {
			b.errorf("%d tokens of %+v: the key expires at noon%+d ms, want the first after %d µs",
				tt.tokens, tt.limit, int64(expiry-noon/1000), tt.full)
		}
		if b.err != nil {
			return b.err
		}
	}
	// A clock of 285,000 years does not outgrow the expiry.
	b := s.bucket("expiry")
	slow := tb.Limit{Capacity: tb.MaxCapacity, Tokens: 1, Per: 1 << 47 * time.Microsecond}
	b.take(slow, noon, tb.MaxCapacity)
	if _, expiry := b.value(); expiry != 9e15 {
		b.errorf("the key of %+v expires at %d ms", slow, expiry)
	}
	return b.err
}

// The deficits of 10 and of 100 tokens have other units, and are rounded up.
func deficitOfAnotherScale(s *simulator) error {
	b := s.bucket("scale")
	small, large := perSecond(10, 1), perSecond(1000, 1) // 10⁶ and 10⁴ units in a token
	b.want(small, noon, 4, granted(6))
	b.want(large, noon, 100, granted(896)) // a new capacity is not a new burst
	b.want(small, noon, 1, refused(95*time.Second+time.Microsecond, 0))
	b.want(large, noon, 96, granted(800))
	if b.err != nil {
		return b.err
	}
	b = s.bucket("scale")
	b.want(small, noon, 4, granted(6))
	b.want(small, noon+1, 1, granted(5))
	_, st := b.take(large, noon+1, 1001) // 4,999,999 of 10⁶ are 50,000 of 10⁴
	if st.deficit != 50_000 {
		b.errorf("the deficit is %d units, want 50000", st.deficit)
	}
	return b.err
}

// After a cut of the capacity, the deficit beyond it is paid first.
func deficitOfAGreaterCapacity(s *simulator) error {
	b := s.bucket("capacity")
	large, small := perSecond(20, 1), perSecond(10, 1)
	b.want(large, noon, 20, granted(0))
	const paid = 11_000_001 // rounded up
	b.want(small, noon, 1, refused(paid*time.Microsecond, 0))
	b.want(small, noon+paid-1, 1, refused(time.Microsecond, 0))
	b.want(small, noon+paid, 1, granted(0))
	b.want(large, noon+paid, 10, granted(0))
	return b.err
}

// Nodes with different capacities, and one that is ahead of the others by half a second, are
// granted what the greater capacity allows.
func alternatingCapacitiesGainNothing(s *simulator) error {
	b := s.bucket("alternate")
	limits := []tb.Limit{perSecond(100, 10), perSecond(7, 10), perSecond(2000, 10)}
	sum := 0
	for i := range uint64(60) {
		for _, limit := range limits {
			now := noon + i*100_000 + i%2*500_000
			n := limit.Capacity
			if i%10 > 0 {
				n = min(n, 16)
			}
			for ; n > 0; n /= 2 {
				if d, _ := b.take(limit, now, n); d.Allowed {
					sum += n
				}
			}
		}
	}
	if most := 2000 + 10*7; sum > most || sum < most-20 {
		b.errorf("%d tokens were granted in 7 s, want nearly %d and no more", sum, most)
	}
	return b.err
}

func foreignValueIsAnError(s *simulator) error {
	ctx := context.Background()
	m, err := s.layout(perSecond(10, 1))
	if err != nil {
		return err
	}
	for _, value := range []string{
		"", "1750000000.123", "\x16\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00", "123456789012",
		"\x0f\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x01",
		"\x17\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x01",
		"\x16\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x01\x00",
	} {
		never := "\x7f\xf0\x00\x00\x00\x00\x00\x00"
		set := s.client.B().Set().Key("foreign").Value(never + value).Build()
		if err := s.client.Do(ctx, set).Error(); err != nil {
			return err
		}
		_, err := s.run(&m, "foreign", []step{{now: noon, costs: []uint64{1}, deadline: noDeadline}})
		var e *rueidis.RedisError
		if !errors.As(err, &e) || !strings.HasPrefix(e.Error(), "NOBUCKET") {
			return fmt.Errorf("value %q: want NOBUCKET, got %w", value, err)
		}
	}
	return nil
}
