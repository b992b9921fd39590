package redis

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkProcesses measures grants on one key by 64 goroutines, in one process or divided among
// several. The calls stand for the calls of the instances of a service.
func BenchmarkProcesses(b *testing.B) {
	s := startServer(b)
	for _, procs := range []int{1, 2, 4, 8} {
		for _, c := range Contenders {
			b.Run(fmt.Sprintf("impl=%s/procs=%d", c.Name, procs), func(b *testing.B) {
				s.empty(b)
				all := startWorkers(b, procs, task{
					Addr: s.addr, Contender: c.Name, Key: "key",
					Limit: generous, Goroutines: goroutines, Calls: b.N,
				})
				s.do(b, "CONFIG", "RESETSTAT")
				b.ResetTimer()
				all.begin(b, time.Now())
				sum := all.end(b)
				b.StopTimer()
				report(b, s, c, sum)
				check(b, c, "hot_key", sum)
			})
		}
	}
}
