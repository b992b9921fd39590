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
	Load  string // grant, refuse, mix or new; of the other benchmarks memory, flood, churn or grow
	Keys  int    // distinct keys
	Dist  string // how often each is called: uniform or zipf
	Par   int    // goroutines
	Bound int    // of the table
	Limit tb.Limit
}

// The limits of the workloads.
var (
	// generous grants whatever these benchmarks can ask for. 100 million tokens a second
	// is more than a machine takes from one key, and the bucket holds a billion more.
	generous = tb.Limit{Capacity: tb.MaxCapacity, Tokens: 100_000_000, Per: time.Second}
	// daily refuses everything but a key's first call.
	daily = tb.Limit{Capacity: 1, Tokens: 1, Per: 24 * time.Hour}
	// brief is met many times in a benchmark's tenth of a second.
	brief = tb.Limit{Capacity: 10, Tokens: 10, Per: 100 * time.Microsecond}
	// modest is so slow that no contender forgets a key within a benchmark because the key
	// has its tokens back.
	modest = tb.Limit{Capacity: 10, Tokens: 1, Per: time.Minute}
)

// suites returns the workloads, those together that share a table.
func suites(short bool) [][]Workload {
	all := [][]Workload{
		cross(Workload{Load: "grant", Keys: 1, Limit: generous}, hot, "uniform"),
		cross(Workload{Load: "refuse", Keys: 1, Limit: daily}, hot, "uniform"),
		cross(Workload{Load: "mix", Keys: 4096, Limit: brief}, wide, "uniform"),
		cross(Workload{Load: "grant", Keys: 1_000, Limit: generous}, wide, "uniform", "zipf"),
	}
	if short {
		return all
	}
	return append(all,
		cross(Workload{Load: "grant", Keys: 100_000, Limit: generous}, wide, "uniform", "zipf"),
		cross(Workload{Load: "grant", Keys: 1_000_000, Limit: generous}, wide, "uniform", "zipf"),
		cross(Workload{Load: "new", Keys: 1_000_000, Bound: 100_000, Limit: modest}, wide, "uniform"),
	)
}

// How many goroutines call a single key, or many.
var hot, wide = []int{1, 2, 64, 256}, []int{1, 64}

// bound is that of a table which has room for all keys.
const bound = 1 << 20

func cross(w Workload, pars []int, dists ...string) []Workload {
	if w.Bound == 0 {
		w.Bound = bound
	}
	var ws []Workload
	for _, w.Dist = range dists {
		for _, w.Par = range pars {
			ws = append(ws, w)
		}
	}
	return ws
}

// String is the workload's part of a benchmark's name.
func (w Workload) String() string {
	keys := count(w.Keys)
	switch w.Load {
	case "new":
		keys = "new"
	case "mix":
		keys = "few"
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

// name returns the i-th key, in memory of its own.
func name(i int) string { return fmt.Sprintf("client-%07d", i) }

// number is the inverse of name.
func number(key string) int {
	n, err := strconv.Atoi(key[len("client-"):])
	if err != nil {
		panic(err)
	}
	return n
}

// calls returns the keys in the order of their use, for the goroutines to go through
// again and again. They lie in memory in that order, as a server has the key it just
// parsed at hand. None of them is in the table: who keeps keys without copying
// them must not be given an advantage when it compares pointers.
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

// fill puts into the table what the workload finds in it: the keys that it calls, or, if
// it calls new ones, as many others as the bound allows. Each key is a new string.
func (w Workload) fill(b *testing.B, allow func(string) bool) {
	keys, first := w.Keys, 0
	if w.Load == "new" {
		keys, first = w.Bound, w.Keys
	}
	for _, i := range rand.New(rand.NewPCG(3, 4)).Perm(keys) {
		if !allow(name(first + i)) {
			b.Fatalf("the first call of a key was refused: the table is not what it should be")
		}
	}
}
