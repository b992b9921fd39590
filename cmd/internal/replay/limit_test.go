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
		rate, cost string
		burst      int
	}{{"0.03", "1", 5}, {"1/m", "1", 3}, {"1/24h", "1", 10}, {"0.07", "2.5", 9}} {
		o := options(t, tt.rate, tt.burst)
		o.Cost = mustCost(t, tt.cost)
		per, _ := new(big.Rat).SetString(tt.cost)
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
			if b.tokens.Cmp(per) < 0 {
				refused++
				continue
			}
			b.tokens.Sub(b.tokens, per)
		}
		if got := replay(t, o, input("a.log", log.String())).Limit; got.Refused != refused ||
			refused == 0 {
			t.Errorf("%+v: %d refused, want %d", tt, got.Refused, refused)
		}
	}
}

func TestCostAndKeyFields(t *testing.T) {
	o := options(t, "1/d", 4)
	o.Keys, o.Cost = []string{"tenant", "user"}, mustCost(t, "weight")
	log := `{"ts":1431857103,"status":200,"tenant":"t","user":"u","weight":1.5}
		{"ts":1431857103,"status":200,"tenant":"t","user":"u","weight":"2.5"}
		{"ts":1431857103,"status":200,"tenant":"t","user":"u","weight":0.1}
		{"ts":1431857103,"status":200,"tenant":"t","weight":4}
		{"ts":1431857103,"status":200,"user":"t"}`
	rep := replay(t, o, input("a.log", log))
	l := rep.Limit
	if l.Granted != 4 || l.Refused != 1 || rep.Keys != 3 || rep.CostStandIns != 1 {
		t.Errorf("%d granted, %d refused, %d keys, %d stand-ins; want 4, 1, 3, 1",
			l.Granted, l.Refused, rep.Keys, rep.CostStandIns)
	}
	if want := map[string]uint64{"tenant": 1, "user": 1}; !reflect.DeepEqual(rep.Missing, want) {
		t.Errorf("missing %v, want %v", rep.Missing, want)
	}
}
