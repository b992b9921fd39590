package benchmarks

import (
	"fmt"
	"runtime"
	"testing"
)

// Memory fills a table of each contender with keys that the benchmark does not keep. It
// reports the heap per key, with the key's string.
func Memory(b *testing.B, contenders []Contender) {
	sizes := []int{10_000, 100_000, 1_000_000}
	if testing.Short() {
		sizes = sizes[:1]
	}
	for _, keys := range sizes {
		w := Workload{Keys: keys, Bound: roomForAll, Limit: modest}
		for _, c := range contenders {
			b.Run(fmt.Sprintf("impl=%s/keys=%s", c.Name, count(keys)), func(b *testing.B) {
				w.measureMemory(b, c)
			})
		}
	}
}

func (w Workload) measureMemory(b *testing.B, c Contender) {
	var bytes float64
	for b.Loop() {
		before := liveHeap()
		allow := c.New(w.Limit, w.Bound)
		w.fill(b, allow)
		bytes += float64(liveHeap()) - float64(before)
		runtime.KeepAlive(allow)
	}
	b.ReportMetric(0, "ns/op") // suppressed
	b.ReportMetric(bytes/float64(w.Keys)/float64(b.N), "B/key")
}

// liveHeap returns the bytes of live objects. The second collection frees what a cleanup of the
// first has let go.
func liveHeap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Flood calls each contender with new keys only, twenty times its bound, and reports the
// live heap on the way. An attacker that invents keys does the same to a server. Contenders
// without a bound take part.
func Flood(b *testing.B, contenders []Contender) {
	const points = 10
	most, bound := 2_000_000, 100_000
	if testing.Short() {
		most, bound = 20_000, 1_000
	}
	for _, c := range contenders {
		before, called := liveHeap(), 0
		allow := c.New(modest, bound)
		for i := range points {
			calls := most / points * (i + 1)
			b.Run(fmt.Sprintf("impl=%s/bound=%s/calls=%s", c.Name, count(bound), count(calls)),
				func(b *testing.B) {
					for ; called < calls; called++ {
						allow(name(called))
					}
					b.ReportMetric(0, "ns/op")
					b.ReportMetric(float64(liveHeap())-float64(before), "heap-B")
				})
		}
		runtime.KeepAlive(allow)
	}
}
