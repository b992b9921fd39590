package rls

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
)

// A service with its buckets in Redis answers random requests as one with its buckets in memory. It
// asks less if it is known that a descriptor refuses.
func TestRedisAsMemory(t *testing.T) {
	address := redistest.Start(t).Addr
	for seed := range uint64(5) {
		random := rand.New(rand.NewPCG(seed, 1))
		tree := ""
		for i := range 6 {
			tree += fmt.Sprintf("- {key: k%d, shadow_mode: %t, quota_mode: %t, rate_limit: {unit: year,"+
				" requests_per_unit: 1, burst: %d, name: %d-%d%s}}\n",
				i, random.IntN(4) == 0, random.IntN(3) == 0, 5+random.IntN(20), seed, i,
				[]string{"", ", debt: true", ", debt: false"}[random.IntN(3)])
		}
		memory, _ := newService(t, tree)
		inRedis, _ := newService(t, tree, shared(t, address, "error"))
		for range 200 {
			var names []string
			for range 1 + random.IntN(4) {
				names = append(names, fmt.Sprintf("k%d=%d-%d", random.IntN(6), seed, random.IntN(3)))
			}
			r := request(random.Uint32N(4), names...)
			for _, d := range r.Descriptors {
				if random.IntN(4) == 0 {
					d.HitsAddend = wrapperspb.UInt64(random.Uint64N(3))
				}
			}
			got := strings.Fields(short(send(t, inRedis, r)))
			want := strings.Fields(short(send(t, memory, r)))
			for i, answer := range got {
				if got[0] == "OVER" && answer == "OK:-" { // was not asked, because one is known to refuse
					want[i] = answer
				}
			}
			expect(t, fmt.Sprint(seed, r), got, want...)
		}
	}
}
