package redis

import (
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// A number of two words has edges where the lower one overflows, and where the upper one is the
// divisor. Random operands miss them, so some are chosen for an edge.
func TestWaitIsExactAtOverflows(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 17))
	number := func(x uint64) *big.Int { return new(big.Int).SetUint64(x) }
	word := new(big.Int).Lsh(big.NewInt(1), 64)
	thousand := big.NewInt(1000)
	for range 40_000 {
		m := &layout{n: magnitude(rng, 1<<rateBits-1), d: magnitude(rng, 1<<rateBits-1)}
		units, now := magnitude(rng, maxSupply), magnitude(rng, 1<<53-1)
		switch rng.IntN(5) {
		case 0: // the clock ends
			now = math.MaxInt64/1000 - rng.Uint64N(3) + 1
			m.n, m.d = 1000, 1 // a unit a ns
			units = math.MaxInt64 - min(math.MaxInt64, 1000*now) + rng.Uint64N(2)
			units = max(1, units)
		case 1: // all products overflow
			m.d = 1<<rateBits - magnitude(rng, 1<<(rateBits-1))
			units = math.MaxUint64/m.d + 1
		case 2, 3: // what has to be supplied, in ns, is just below or at the edge
			m.d = 1<<rateBits - magnitude(rng, 1<<(rateBits-1))
			edge := big.NewInt(1 + rng.Int64N(1<<17))
			if rng.IntN(2) == 0 {
				m.n = edge.Uint64()
			}
			edge.Mul(edge, word).Quo(edge, thousand)
			edge.Add(edge, big.NewInt(rng.Int64N(2)))
			// units·d − phase is the edge, and the phase is now·n modulo d.
			d := number(m.d)
			phase := new(big.Int).Mod(new(big.Int).Neg(edge), d)
			inverse := new(big.Int).ModInverse(number(m.n), d)
			if inverse == nil {
				continue
			}
			now = inverse.Mul(inverse, phase).Mod(inverse, d).Uint64()
			if units = edge.Add(edge, phase).Quo(edge, d).Uint64(); units >= 1<<33 {
				continue
			}
		}
		d, n := number(m.d), number(m.n)
		phase := number(now)
		phase.Mul(phase, n).Mod(phase, d)
		ns := number(units)
		ns.Mul(ns, d).Sub(ns, phase).Mul(ns, thousand)
		ns.Add(ns, n).Sub(ns, big.NewInt(1)).Quo(ns, n)
		want := tb.Never
		end := number(now)
		if end.Mul(end, thousand).Add(end, ns).IsInt64() {
			want = time.Duration(ns.Int64() + 5000)
		}
		s := state{time: now, now: now - 5}
		if got := m.wait(&s, units); got != want {
			t.Fatalf("%d units at %d/%d a µs after %d µs: %d, want %d", units, m.n, m.d, now, got, want)
		}
	}
}

// The level of an empty bucket is 0, and not −0, which would be printed.
func TestEmptyBucketHasNoSign(t *testing.T) {
	m := layoutOf(perSecond(10, 1))
	s := newState(noon, m.capacity, noon)
	if v := m.level(&s, 0); math.Signbit(v.Tokens) || v.Tokens != 0 || v.NextToken != time.Second {
		t.Errorf("%+v", v)
	}
}

func TestLimitsInAndOutOfRange(t *testing.T) {
	us := func(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
	for _, tt := range []struct {
		limit tb.Limit
		ok    bool
	}{
		{perSecond(1, 1), true},
		{perSecond(tb.MaxCapacity, 1_000_000_000), true},
		{tb.Limit{Capacity: 1 << 23, Tokens: 1, Per: us(1<<48 - 1)}, true},
		{tb.Limit{Capacity: 1 << 23, Tokens: 1, Per: us(1 << 48)}, false},
		{tb.Limit{Capacity: 1 << 23, Tokens: 1<<48 - 1, Per: us(1 << 47)}, true},
		{tb.Limit{Capacity: 1 << 23, Tokens: 1<<48 + 1, Per: us(1 << 47)}, false},
		{tb.Limit{Capacity: 1, Tokens: math.MaxInt64 - 1, Per: math.MaxInt64}, false},
	} {
		_, err := newLayout(tt.limit, 0)
		var cfg *tb.ConfigError
		if tt.ok && err != nil || !tt.ok && (!errors.As(err, &cfg) || cfg.Field != "Tokens/Per") {
			t.Errorf("%+v: got error %v, in range %t", tt.limit, err, tt.ok)
		}
	}
}

func TestErrorNamesNAndD(t *testing.T) {
	_, err := newLayout(tb.Limit{Capacity: 1 << 23, Tokens: 3, Per: time.Microsecond << 48}, 0)
	want := "ratelimit: Tokens/Per is N/D = 3/281474976710656 units a microsecond, " +
		"with 1 units in a token, want N and D below 2^48 in lowest terms"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestRepliesOfAnotherFormAreRefused(t *testing.T) {
	for _, text := range []string{"", "OK", strings.Repeat("x", 18)} {
		if r, err := parse(text, 1); err == nil {
			t.Errorf("%q is %+v", text, r)
		}
	}
}
