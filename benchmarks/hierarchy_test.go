package benchmarks

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// BenchmarkTakeAll measures a call on a hierarchy: a clock reading, a charge for each level, and
// TakeAll. With keys=hot all calls are of one user, with keys=spread of 100,000 users of 1,000
// tenants. With load=refuse the highest level refuses, and all levels below it would grant. The
// callers share a pool of charges, as in examples/hierarchy.
func BenchmarkTakeAll(b *testing.B) {
	for _, levels := range []int{1, 2, 3, 5} {
		for _, keys := range []string{"hot", "spread"} {
			for _, load := range []string{"grant", "refuse"} {
				made := sync.OnceValue(func() *hierarchy { return newHierarchy(levels, keys, load) })
				for _, par := range []int{1, 64} {
					name := fmt.Sprintf("levels=%d/keys=%s/load=%s/par=%d", levels, keys, load, par)
					b.Run(name, func(b *testing.B) { made().run(b, par) })
				}
			}
		}
	}
}

// user is the lowest key of a hierarchy. The levels above it are its team, region and tenant,
// with string keys, and all users together, without a key.
type user struct{ tenant, name string }

type hierarchy struct {
	users     *cas.Limiter[user]
	groups    []*cas.Limiter[string] // the levels between users and all
	all       *cas.Bucket            // nil with fewer than three levels
	callers   []caller
	permitted bool // the load: all calls are granted, or none
	pool      sync.Pool
}

// caller has the keys of one user.
type caller struct {
	user   user
	groups [3]string
}

// kept has the charges of a call.
type kept struct {
	user      cas.Charge[user]
	groups    [3]cas.Charge[string]
	all       cas.BucketCharge
	charges   []tb.Charge
	decisions []tb.Decision
}

func newHierarchy(levels int, keys, load string) *hierarchy {
	users, tenants := 100_000, 1_000
	switch {
	case keys == "hot":
		users, tenants = 1, 1
	case testing.Short():
		users, tenants = 1_000, 10
	}
	h := &hierarchy{permitted: load == "grant"}
	limit := func(level int) tb.Limit {
		if level == levels && load == "refuse" {
			return daily
		}
		return generous
	}
	h.users = must(cas.New[user](limit(1)))
	for level := 2; level <= levels && (level < levels || level == 2); level++ {
		h.groups = append(h.groups, must(cas.New[string](limit(level))))
	}
	if levels > 2 {
		h.all = must(cas.NewBucket(limit(levels)))
	}
	h.pool.New = func() any { return h.newKept(levels) }
	for i := range users {
		c := caller{user: user{fmt.Sprintf("tenant-%04d", i%tenants), fmt.Sprintf("user-%06d", i)}}
		for g := range c.groups { // the last is the tenant, the others are parts of it
			c.groups[g] = fmt.Sprintf("%s/%d", c.user.tenant, i/tenants%(1<<(2*(2-g))))
		}
		h.callers = append(h.callers, c)
	}
	rand.New(rand.NewPCG(5, 6)).Shuffle(users, func(i, j int) {
		h.callers[i], h.callers[j] = h.callers[j], h.callers[i]
	})
	for _, c := range h.callers {
		h.fill(c)
	}
	runtime.GC() // collect the garbage of filling before the measurement
	return h
}

// fill adds the keys of c, and takes all that a level holds that is to refuse.
func (h *hierarchy) fill(c caller) {
	now := time.Now()
	_, _ = h.users.AllowAt(now, c.user, 1)
	for i, l := range h.groups {
		_, _ = l.AllowAt(now, h.group(c, i), 1)
	}
	if h.all != nil {
		_, _ = h.all.AllowAt(now, 1)
	}
}

// group returns the key of c in h.groups[i].
func (h *hierarchy) group(c caller, i int) string { return c.groups[len(c.groups)-len(h.groups)+i] }

func (h *hierarchy) newKept(levels int) *kept {
	k := &kept{decisions: make([]tb.Decision, levels)}
	k.charges = []tb.Charge{&k.user}
	for i := range h.groups {
		k.charges = append(k.charges, &k.groups[i])
	}
	if h.all != nil {
		k.charges = append(k.charges, &k.all)
	}
	return k
}

func (h *hierarchy) take(c caller) bool {
	k := h.pool.Get().(*kept)
	k.user, _ = h.users.Charge(c.user, 1)
	for i, l := range h.groups {
		k.groups[i], _ = l.Charge(h.group(c, i), 1)
	}
	if h.all != nil {
		k.all, _ = h.all.Charge(1)
	}
	_, allowed, err := tb.TakeAll(time.Now(), k.charges, k.decisions)
	h.pool.Put(k)
	return allowed && err == nil
}

// run makes b.N calls of the users in turn, from par goroutines.
func (h *hierarchy) run(b *testing.B, par int) {
	b.ReportAllocs()
	b.ResetTimer()
	granted := together(b.N, par, func(start, end int) (granted int) {
		for call := start; call < end; call++ {
			if h.take(h.callers[call%len(h.callers)]) {
				granted++
			}
		}
		return granted
	})
	if h.permitted && granted != b.N || !h.permitted && granted != 0 {
		b.Errorf("%d of %d calls granted", granted, b.N)
	}
}
