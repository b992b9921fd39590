// Package benchmarks holds the workloads that limiters are compared on.
//
// The contenders of one row run one after the other. To be fair on a machine whose
// speed drifts, run the whole suite several times with -count=1, rather than once with
// a higher count: see the bench task.
package benchmarks

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Contender is a limiter to measure.
type Contender struct {
	Name string // as in impl=Name
	// New returns a function that decides on one call of key, with a table of at most
	// maxKeys keys if the limiter has a bound.
	New func(limit tb.Limit, maxKeys int) func(key string) (granted bool)
	// Skip says which workloads the contender has no part in.
	Skip func(Workload) bool
}

// Workload is one row of the comparison.
type Workload struct {
	Load  string // grant, refuse or new
	Keys  int    // distinct keys, used in random order
	Par   int    // goroutines
	Bound int    // of the table
	Limit tb.Limit
}

// generous grants whatever these benchmarks can ask for. 100,000 tokens a second is
// more than a machine takes from one key of 1,000, and the bucket holds the rest.
var generous = tb.Limit{Capacity: tb.MaxCapacity, Tokens: 100_000_000, Per: time.Second}

// Workloads are the rows.
func Workloads() []Workload {
	const bound = 1 << 20
	daily := tb.Limit{Capacity: 1, Tokens: 1, Per: 24 * time.Hour}
	modest := tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second}
	var ws []Workload
	for _, par := range []int{1, 64} {
		ws = append(ws,
			Workload{"grant", 1, par, bound, generous},
			Workload{"refuse", 1, par, bound, daily},
			Workload{"grant", 1_000, par, bound, generous},
			Workload{"grant", 1_000_000, par, bound, generous},
			Workload{"new", 1 << 20, par, 100_000, modest},
		)
	}
	return ws
}

func (w Workload) String() string {
	keys := strconv.Itoa(w.Keys)
	switch {
	case w.Load == "new":
		keys = "new"
	case w.Keys >= 1_000_000:
		keys = fmt.Sprint(w.Keys/1_000_000, "M")
	case w.Keys >= 1_000:
		keys = fmt.Sprint(w.Keys/1_000, "k")
	}
	return fmt.Sprintf("load=%s/keys=%s/par=%d", w.Load, keys, w.Par)
}

// Run runs all contenders on all workloads.
func Run(b *testing.B, contenders []Contender) {
	for _, w := range Workloads() {
		b.Run(w.String(), func(b *testing.B) {
			keys := w.keys()
			for _, c := range contenders {
				if c.Skip == nil || !c.Skip(w) {
					b.Run("impl="+c.Name, func(b *testing.B) { w.run(b, c, keys) })
				}
			}
		})
	}
}

// keys returns the keys in the order of their use. They lie in memory in that order,
// as a server has the key it just parsed at hand, and the table's copies do not.
func (w Workload) keys() []string {
	keys := make([]string, w.Keys)
	for i, n := range rand.New(rand.NewPCG(1, 2)).Perm(w.Keys) {
		keys[i] = fmt.Sprintf("client-%07d", n)
	}
	return keys
}

func (w Workload) run(b *testing.B, c Contender, keys []string) {
	allow := c.New(w.Limit, w.Bound)
	if w.Load != "new" { // the table is full of what will be asked for
		for _, i := range rand.New(rand.NewPCG(3, 4)).Perm(len(keys)) {
			allow(keys[i])
		}
	}
	var granted, calls, next atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(max(1, w.Par/2)) // times GOMAXPROCS, which is asserted below
	b.ResetTimer()
	loop := func(more func() bool) {
		var n, g int64
		at, end := 0, 0
		for more() {
			if at == end {
				at, end = w.turn(&next, len(keys), n == 0)
			}
			if allow(keys[at]) {
				g++
			}
			n++
			at++
		}
		calls.Add(n)
		granted.Add(g)
	}
	if w.Par == 1 {
		loop(b.Loop)
	} else {
		b.RunParallel(func(pb *testing.PB) { loop(pb.Next) })
	}
	b.StopTimer()
	w.check(b, granted.Load(), calls.Load())
}

// turn returns the range of keys that a goroutine uses next. It starts somewhere and goes
// round on its own, so that the goroutines share nothing but the limiter; only new keys
// are handed out, a few hundred at a time, because they have to be new for all.
func (w Workload) turn(next *atomic.Int64, keys int, first bool) (at, end int) {
	const few = 250
	switch {
	case w.Load == "new":
		at = int(next.Add(1)-1) % (keys / few) * few
		return at, at + few
	case first:
		return int(next.Add(7919)) % keys, keys
	}
	return 0, keys
}

// check fails a benchmark that measured something else than its name says.
func (w Workload) check(b *testing.B, granted, calls int64) {
	want := calls
	if w.Load == "refuse" {
		want = 0
	}
	if granted != want {
		b.Errorf("%d of %d calls granted, want %d", granted, calls, want)
	}
}
