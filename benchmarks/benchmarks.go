// Package benchmarks holds the workloads that limiters are compared on.
//
// The contenders of one workload run one after the other, within seconds. To be fair on
// a machine whose speed drifts, run the whole suite several times with -count=1, rather
// than once with a higher count: see the bench task. With -short the workloads that take
// long to set up are left out.
package benchmarks

import (
	"runtime"
	"sync"
	"testing"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Contender is a limiter to measure.
type Contender struct {
	Name string // as in impl=Name
	// New returns a function that decides on one call of key, with a table of at most
	// maxKeys keys if the limiter has a bound. The function is called concurrently.
	New func(limit tb.Limit, maxKeys int) func(key string) (granted bool)
	// Skip says which workloads the contender has no part in.
	Skip func(Workload) bool
}

func (c Contender) skips(w Workload) bool { return c.Skip != nil && c.Skip(w) }

// Run runs all contenders on all workloads. Workloads that differ only in how they call
// a limiter share one, because a table of a million keys takes a while to fill.
func Run(b *testing.B, contenders []Contender) {
	for _, suite := range suites(testing.Short()) {
		var traffics []*traffic
		made := new(int)
		for _, w := range suite {
			traffics = append(traffics, &traffic{Workload: w, calls: w.calls(), made: made})
		}
		for _, c := range contenders {
			runSuite(b, c, traffics)
		}
	}
}

func runSuite(b *testing.B, c Contender, traffics []*traffic) {
	made := false
	table := sync.OnceValue(func() func(string) bool {
		made = true
		w := traffics[0].Workload
		allow := c.New(w.Limit, w.Bound)
		w.fill(b, allow)
		runtime.GC() // what filling left behind is nobody's cost
		return allow
	})
	for _, t := range traffics {
		if !c.skips(t.Workload) {
			b.Run("impl="+c.Name+"/"+t.String(), func(b *testing.B) { t.run(b, table()) })
		}
	}
	if table = nil; made {
		runtime.GC() // nor is a table that nobody uses any more
	}
}
