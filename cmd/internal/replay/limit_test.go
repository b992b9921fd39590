package replay

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
)

// oracle is a token bucket in fractions.
type oracle struct {
	tokens *big.Rat
	last   int64
}

// The refusals are those of buckets in exact fractions.
func TestALogIsDecidedExactly(t *testing.T) {
	for _, tt := range []struct {
		rate  string
		burst int
	}{{"0.03", 5}, {"1/m", 3}, {"1/24h", 10}, {"0.07", 9}} {
		o := options(t, tt.rate, tt.burst)
		one := big.NewRat(1, 1)
		burst := new(big.Rat).SetInt64(int64(tt.burst))
		rnd, buckets, refused := rand.New(rand.NewPCG(1, 2)), map[string]*oracle{}, uint64(0)
		var log strings.Builder
		for i := range 3000 {
			client := fmt.Sprint(min(rnd.IntN(30), rnd.IntN(30)))
			fmt.Fprintf(&log, `{"ts":%d,"path":"/","ip":%q}`+"\n", 1e9+i/3*3, client)
			b, now := buckets[client], int64(i/3*3)
			if b == nil {
				b = &oracle{new(big.Rat).Set(burst), now}
				buckets[client] = b
			}
			supply := big.NewRat((now-b.last)*int64(time.Second), int64(o.Rate.Per))
			b.tokens.Add(b.tokens, supply.Mul(supply, big.NewRat(o.Rate.Tokens, 1)))
			if b.last = now; b.tokens.Cmp(burst) > 0 {
				b.tokens.Set(burst)
			}
			if b.tokens.Cmp(one) < 0 {
				refused++
				continue
			}
			b.tokens.Sub(b.tokens, one)
		}
		if got := replay(t, o, input("a.log", log.String())).Limit; got.Refused != refused ||
			refused == 0 {
			t.Errorf("%+v: %d refused, want %d", tt, got.Refused, refused)
		}
	}
}

func TestKeyFields(t *testing.T) {
	o := options(t, "1/d", 1)
	o.Keys = []string{"tenant", "user"}
	log := `{"ts":1431857103,"status":200,"tenant":"t","user":"u"}
		{"ts":1431857103,"status":200,"tenant":"t","user":"u"}
		{"ts":1431857103,"status":200,"tenant":"t"}
		{"ts":1431857103,"status":200,"user":"t"}`
	rep := replay(t, o, input("a.log", log))
	if l := rep.Limit; l.Granted != 3 || l.Refused != 1 || rep.Keys != 3 {
		t.Errorf("%d granted, %d refused, %d keys; want 3, 1, 3", l.Granted, l.Refused, rep.Keys)
	}
	if want := map[string]uint64{"tenant": 1, "user": 1}; !reflect.DeepEqual(rep.Missing, want) {
		t.Errorf("missing %v, want %v", rep.Missing, want)
	}
}
