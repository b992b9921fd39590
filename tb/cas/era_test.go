package cas

import (
	"math/big"
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/proof/lockstep"
	"github.com/seed-181794aa/ratelimit/tb"
)

// sinceOneByOne is layout.since by its definition: one era after another, in integers of any size.
func sinceOneByOne(m *layout, i int, tokens int64, t uint64) (*big.Int, uint64) {
	has := big.NewInt(tokens)
	for _, e := range m.eras[i+1:] {
		if t <= e.until {
			gain := new(big.Int).Sub(suppliedBy(e, e.until), suppliedFrom(e, t))
			has.Add(has, gain.Mul(gain, big.NewInt(maxScale/int64(e.scale))))
			t = e.until
		}
		if full := big.NewInt(e.full()); has.Cmp(full) > 0 {
			has = full
		}
	}
	return has, t
}

// A bucket that has missed eras has what they have left it, one after another: in any debt that a
// bucket may be in, with an own time in any of the eras, and also if the first ones are forgotten.
func TestRunsOfErasAreErasOneByOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for range 300 {
		kinds, forgets := 1+rng.IntN(3), rng.IntN(2) == 0
		limit := func() tb.Limit {
			switch rng.IntN(kinds) {
			case 0: // some eras supply less than a bucket lacks
				return tb.Limit{Capacity: 100 + rng.IntN(20), Tokens: 1, Per: time.Hour}
			case 1:
				return edgeLimits[rng.IntN(len(edgeLimits))]
			}
			return anyLimit(rng.Uint64()>>rng.IntN(64), rng.Uint64()>>rng.IntN(64),
				rng.Uint64()>>rng.IntN(64))
		}
		m := newLayout(limit(), 0, 0)
		at, pace := firstInstant(m.limit), uint64(1)<<rng.IntN(45)
		for range 1 + rng.IntN(1<<rng.IntN(11)) {
			if rng.IntN(4) > 0 {
				at += rng.Uint64N(pace)
			}
			m = m.change(limit(), at, 1<<53)
			if forgets && len(m.eras) > 5 {
				m.eras = m.eras[rng.IntN(3):]
			}
		}
		for range 100 {
			i := rng.IntN(len(m.eras))
			tokens := rng.Int64N(m.eras[i].full() + 1)
			if rng.IntN(2) == 0 {
				tokens = -rng.Int64N(1 + int64(deepestDebt*maxScale)>>rng.IntN(50))
			}
			own := m.eras[i].until
			switch rng.IntN(3) {
			case 0:
				own += rng.Uint64N(1 << rng.IntN(50))
			case 1:
				own = m.eras[i+rng.IntN(len(m.eras)-i)].until + uint64(rng.IntN(2))
			}
			got, since := m.since(i, tokens, own)
			want, then := sinceOneByOne(m, i, tokens, own)
			if !want.IsInt64() || got != want.Int64() || since != then {
				t.Fatalf("era %d of %d, %d at %d: %d at %d, want %v at %d",
					i, len(m.eras), tokens, own, got, since, want, then)
			}
		}
	}
}

// While the capacity rises, no era is forgotten, and all together supply more than an int64 holds.
func TestManyErasSupplyMoreThanAnyBucketLacks(t *testing.T) {
	f := newFixture(t)
	f.granted("a", 1)
	for i := range 20_000 {
		f.now += time.Hour
		if err := f.SetLimit(tb.Limit{Capacity: 11 + i, Tokens: 1, Per: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(f.layout().eras); n != 20_000 {
		t.Fatalf("%d eras are remembered", n)
	}
	if got, _ := f.Level(t.Context(), "a"); got.Tokens != 20_009 {
		t.Errorf("%v tokens, want the last capacity but one", got.Tokens)
	}
}

// From any era to the present there are few runs, also after eras have been forgotten.
func TestFewRunsLeadThroughManyEras(t *testing.T) {
	limit := tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second}
	m := newLayout(limit, 0, firstInstant(limit))
	for n := 1; n <= 100_000; n++ {
		limit.Capacity ^= 1
		if m = m.change(limit, m.begin, 0); n%10_000 == 0 {
			m.eras = m.eras[n/10:]
		}
		if n%997 > 0 && n&(n+1) > 0 {
			continue
		}
		for i := 0; i < len(m.eras); i = 1 + i*2 {
			steps := 0
			for k := len(m.eras) - 1; k > i; steps++ {
				if r := m.eras[k].run; k-r.eras >= i {
					k -= r.eras
				} else {
					k--
				}
			}
			if steps > 3*bits.Len(uint(n)) {
				t.Fatalf("%d runs from era %d of %d", steps, i, len(m.eras))
			}
		}
	}
}

// A call under way has the list of eras of its own layout, which later changes extend in place.
func TestChangesWhileBucketsOfEarlierErasAreRead(t *testing.T) {
	f := newFixture(t)
	f.granted("a", 10)
	limit := tb.Limit{Capacity: 10, Tokens: 1, Per: 24 * time.Hour}
	lockstep.Run(2000, func(i, round int) {
		if i == 0 {
			limit.Tokens ^= 3
			if err := f.SetLimit(limit); err != nil {
				t.Error(err)
			}
			return
		}
		if d, err := f.AllowAt(time.Unix(0, 0), "a", 1); d.Allowed || err != nil {
			t.Errorf("round %d: %+v, %v", round, d, err)
		}
	}, func(int) {})
}

// What many changes leave behind is collected once the buckets are full, although the list of eras
// is extended in place.
func TestForgottenErasLeaveTheList(t *testing.T) {
	f := newFixture(t)
	f.granted("a", 10)
	change := func(n int) {
		t.Helper()
		for i := range n {
			err := f.SetLimit(tb.Limit{Capacity: 10, Tokens: 1, Per: time.Hour + time.Duration(i%2)})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	change(100_000)
	if n := len(f.layout().eras); n < 100_000-1 {
		t.Fatalf("%d eras are remembered", n)
	}
	f.now += 1000 * time.Hour
	change(2)
	if m := f.layout(); len(m.eras) > keptEras || cap(m.eras) > 4*keptEras {
		t.Errorf("%d eras are remembered, in an array of %d", len(m.eras), cap(m.eras))
	}
}
