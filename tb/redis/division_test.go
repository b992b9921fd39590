package redis

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
)

// supplyIsExact compares the supply with math/big, with operands at the edges of its range.
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
	for len(want) < 4000 {
		d, n := int64(magnitude(rng, 1<<rateBits-1)), int64(magnitude(rng, 1<<rateBits-1))
		at, e := int64(magnitude(rng, 1<<53-1)), int64(magnitude(rng, 1<<53-1))
		switch rng.IntN(3) {
		case 0: // near the edges
			d = 1<<rateBits - int64(magnitude(rng, 1<<(rateBits-1)))
			n = d - int64(magnitude(rng, uint64(d-1)))
			e = 1<<rateBits - int64(magnitude(rng, 1<<(rateBits-1)))
		case 1: // one or both are small
			d, n = 1<<20+int64(magnitude(rng, 1<<30)), int64(magnitude(rng, 1<<26))
			e = int64(magnitude(rng, 1<<27))
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
		if units.Sub(units, whole(at)).BitLen() > rateBits {
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
