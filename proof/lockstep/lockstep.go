// Package lockstep lets tests make two goroutines collide.
package lockstep

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Run calls f(0, round) and f(1, round) at the same time, as closely as two goroutines can, and
// then check(round). It does so for each round below rounds.
func Run(rounds int, f func(i, round int), check func(round int)) {
	var arrived atomic.Int64
	meet := func(n int) {
		arrived.Add(1)
		for spins := 0; arrived.Load() < int64(n); spins++ {
			if spins > 1000 { // the other goroutine may have no processor
				runtime.Gosched()
			}
		}
	}
	var both sync.WaitGroup
	for i := range 2 {
		both.Go(func() {
			for round := range rounds {
				meet(6*round + 2)
				f(i, round)
				meet(6*round + 4)
				if i == 0 {
					check(round)
				}
				meet(6*round + 6)
			}
		})
	}
	both.Wait()
}
