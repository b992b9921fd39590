package benchmarks

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Workload is one row of the comparison.
type Workload struct {
	Load  string // grant, refuse, new; in another benchmark churn
	Keys  int    // distinct keys
	Dist  string // distribution of the calls: uniform or zipf
	Par   int    // goroutines
	Bound int    // on the keys in the table
	Limit tb.Limit
}

// The limits of the workloads.
var (
	// generous grants every call. 100 million tokens per second are more than a machine takes
	// from one key, and the bucket holds a billion more.
	generous = tb.Limit{Capacity: tb.MaxCapacity, Tokens: 100_000_000, Per: time.Second}
	// daily refuses every call but a key's first.
	daily = tb.Limit{Capacity: 1, Tokens: 1, Per: 24 * time.Hour}
	// modest is so slow that no contender forgets a key because its bucket is full again.
	modest = tb.Limit{Capacity: 10, Tokens: 1, Per: time.Minute}
)

// suites returns the workloads, grouped by the table that they share.
func suites(short bool) [][]Workload {
	all := [][]Workload{
		cross(Workload{Load: "grant", Keys: 1, Limit: generous}, oneKeyPars, "uniform"),
		cross(Workload{Load: "refuse", Keys: 1, Limit: daily}, oneKeyPars, "uniform"),
		cross(Workload{Load: "grant", Keys: 1_000, Limit: generous}, manyKeysPars, "uniform", "zipf"),
	}
	if short {
		return all
	}
	return append(all,
		cross(Workload{Load: "grant", Keys: 100_000, Limit: generous}, manyKeysPars, "uniform", "zipf"),
		cross(Workload{Load: "grant", Keys: 1_000_000, Limit: generous}, manyKeysPars, "uniform", "zipf"),
		cross(Workload{Load: "new", Keys: 1_000_000, Bound: 100_000, Limit: modest},
			manyKeysPars, "uniform"),
	)
}

// The numbers of goroutines that call one key, or many.
var oneKeyPars, manyKeysPars = []int{1, 2, 64, 256}, []int{1, 64}

// roomForAll is the bound of a table that never evicts.
const roomForAll = 1 << 20

func cross(w Workload, pars []int, dists ...string) []Workload {
	if w.Bound == 0 {
		w.Bound = roomForAll
	}
	var ws []Workload
	for _, w.Dist = range dists {
		for _, w.Par = range pars {
			ws = append(ws, w)
		}
	}
	return ws
}

// String returns the workload's part of a benchmark's name.
func (w Workload) String() string {
	keys := count(w.Keys)
	if w.Load == "new" {
		keys = "new"
	}
	return fmt.Sprintf("load=%s/keys=%s/dist=%s/par=%d", w.Load, keys, w.Dist, w.Par)
}

// count writes a round number as 1M or 100k.
func count(n int) string {
	switch {
	case n > 0 && n%1_000_000 == 0:
		return strconv.Itoa(n/1_000_000) + "M"
	case n > 0 && n%1_000 == 0:
		return strconv.Itoa(n/1_000) + "k"
	}
	return strconv.Itoa(n)
}

// zipf is the exponent of Zipf's distribution: the k-th most frequent key has a share of the calls
// in proportion to k to the power of -zipf.
const zipf = 1.1

// name returns the i-th key, in memory of its own.
func name(i int) string { return fmt.Sprintf("client-%07d", i) }

// calls returns the keys in the order of their calls, which goroutines repeat. The strings
// lie in memory in that order, like a key that a server has just parsed. They are other
// copies than the strings in the table, so that no contender compares pointers instead of
// bytes.
func (w Workload) calls() func() []string {
	return sync.OnceValue(func() []string {
		random := rand.New(rand.NewPCG(1, 2))
		order := random.Perm(w.Keys)
		if w.Dist == "zipf" {
			next := rand.NewZipf(random, zipf, 1, uint64(w.Keys-1))
			order = make([]int, max(w.Keys, 10_000))
			for i := range order {
				order[i] = int(next.Uint64())
			}
		}
		for len(order) < batch {
			order = append(order, order...)
		}
		var text strings.Builder
		for _, i := range order {
			text.WriteString(name(i))
		}
		calls, size := make([]string, len(order)), len(name(0))
		for i := range calls {
			calls[i] = text.String()[i*size : (i+1)*size]
		}
		return calls
	})
}

// fill inserts the keys that the workload calls. If the workload calls new keys, fill inserts
// other keys up to the bound. Each key is a new string.
func (w Workload) fill(b *testing.B, allow func(string) bool) {
	keys, first := w.Keys, 0
	if w.Load == "new" {
		keys, first = w.Bound, w.Keys
	}
	for _, i := range rand.New(rand.NewPCG(3, 4)).Perm(keys) {
		if !allow(name(first + i)) {
			b.Fatal("the first call of a key was refused")
		}
	}
}
