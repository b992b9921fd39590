// Package benchmarks compares limiters on the same workloads.
//
// The contenders of a workload run within seconds of each other. The speed of a machine
// drifts, so run the whole suite several times instead of once with a higher -count:
// scripts/bench does that. With -short, the workloads that take long to set up are skipped.
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
	// New returns a function that decides on one call of key. The table has at most maxKeys
	// keys if the limiter has a bound. The function is safe for concurrent use.
	New func(limit tb.Limit, maxKeys int) func(key string) (granted bool)
	// Skip reports whether the contender does not take part in a workload of Run. Nil means never.
	Skip func(Workload) bool
}

// Run runs all contenders on all workloads. Workloads that differ only in their calls share
// a limiter, because a table of a million keys takes a while to fill.
func Run(b *testing.B, contenders []Contender) { run(b, contenders, suites(testing.Short())) }

func run(b *testing.B, contenders []Contender, suites [][]Workload) {
	for _, suite := range suites {
		var traffics []*traffic
		position := new(int)
		for _, w := range suite {
			traffics = append(traffics, &traffic{Workload: w, calls: w.calls(), position: position})
		}
		for _, c := range contenders {
			runSuite(b, c, traffics)
		}
	}
}

func runSuite(b *testing.B, c Contender, traffics []*traffic) {
	filled := false
	table := sync.OnceValue(func() func(string) bool {
		filled = true
		w := traffics[0].Workload
		allow := c.New(w.Limit, w.Bound)
		w.fill(b, allow)
		runtime.GC() // collect the garbage of filling before the measurement
		return allow
	})
	for _, t := range traffics {
		if c.Skip == nil || !c.Skip(t.Workload) {
			b.Run("impl="+c.Name+"/"+t.String(), func(b *testing.B) { t.run(b, table()) })
		}
	}
	if table = nil; filled {
		runtime.GC() // collect the table before the next contender
	}
}
