package tb

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

func TestBetweenFindsTheSmallestDenominator(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	mixedOf := func(r *big.Rat) mixed {
		whole, rest := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
		return mixed{whole.Uint64(), rest.Uint64(), r.Denom().Uint64()}
	}
	for range 20_000 {
		lo := big.NewRat(rng.Int64N(200), rng.Int64N(50)+1)
		hi := new(big.Rat).Add(lo, big.NewRat(1, rng.Int64N(300)+1))
		want := new(big.Rat)
		for q := int64(1); ; q++ {
			p := new(big.Int).Mul(lo.Num(), big.NewInt(q))
			p.Quo(p, lo.Denom()).Add(p, big.NewInt(1))
			want.SetFrac(p, big.NewInt(q))
			if want.Cmp(hi) < 0 {
				break
			}
		}
		num, den := between(mixedOf(lo), mixedOf(hi))
		if big.NewRat(int64(num), int64(den)).Cmp(want) != 0 || want.Denom().Uint64() != den {
			t.Fatalf("between(%v, %v) = %d/%d, want %v", lo, hi, num, den, want)
		}
	}
}

func TestLimitPerSecondAllocatesNothing(t *testing.T) {
	for _, rate := range []float64{5, 1.0 / 3, 123456.789, 3.3e-10} {
		if n := testing.AllocsPerRun(100, func() { _, _ = LimitPerSecond(10, rate) }); n > 0 {
			t.Errorf("%v a second: %v allocations, want none", rate, n)
		}
	}
}
