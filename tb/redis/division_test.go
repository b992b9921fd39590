package redis

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
)

// wideDivisionIsExact compares divide with math/big, with operands at the edges of its range.
func wideDivisionIsExact(s *simulator) error {
	const loop = `
local reply, i = {}, 1
while i <= #ARGV[1] do
  local a, b, r, m
  a, b, r, m, i = struct.unpack('>dddd', ARGV[1], i)
  reply[#reply + 1] = string.format('%.0f %.0f', divide(a, b, r, m))
end
return reply`
	rng := rand.New(rand.NewPCG(15, 1))
	var operands []uint64
	for len(operands) < 4*4_000 {
		m := 1<<wideBits - magnitude(rng, 1<<wideBits-1)
		a, b := rng.Uint64N(m), rng.Uint64N(m)
		if rng.IntN(2) == 0 { // a short quotient
			a, b = magnitude(rng, exact-1), magnitude(rng, 1<<wideBits-1)
			if hi, lo := bits.Mul64(a, b); hi >= m {
				continue
			} else if q, _ := bits.Div64(hi, lo, m); q >= 1<<32 {
				continue
			}
		}
		operands = append(operands, a, b, rng.Uint64N(m), m)
	}
	var arg []byte
	for _, x := range operands {
		arg = binary.BigEndian.AppendUint64(arg, math.Float64bits(float64(x)))
	}
	got, err := s.client.Do(context.Background(), s.client.B().Eval().Script(s.texts.wide+loop).
		Numkeys(0).Arg(string(arg)).Build()).AsStrSlice()
	if err != nil {
		return err
	}
	for i, g := range got {
		a, b, r, m := operands[4*i], operands[4*i+1], operands[4*i+2], operands[4*i+3]
		hi, lo := bits.Mul64(a, b)
		lo, carry := bits.Add64(lo, r, 0)
		q, rest := bits.Div64(hi+carry, lo, m)
		if want := fmt.Sprint(q, rest); g != want {
			return fmt.Errorf("(%d*%d + %d) / %d is %s, want %s", a, b, r, m, g, want)
		}
	}
	return nil
}
