package benchmarks

import (
	"fmt"
	"runtime"
	"runtime/metrics"
	"testing"
)

// Memory fills a table of each contender with keys that nobody else holds, and reports the
// heap that a key takes, its string included, and the CPU time of a garbage collection with
// the table in it.
func Memory(b *testing.B, contenders []Contender) {
	sizes := []int{10_000, 100_000, 1_000_000}
	if testing.Short() {
		sizes = sizes[:1]
	}
	for _, keys := range sizes {
		w := Workload{Load: "memory", Keys: keys, Par: 1, Bound: bound, Limit: modest}
		for _, c := range contenders {
			if !c.skips(w) {
				b.Run(fmt.Sprintf("impl=%s/keys=%s", c.Name, count(keys)), func(b *testing.B) {
					w.measureMemory(b, c)
				})
			}
		}
	}
}

func (w Workload) measureMemory(b *testing.B, c Contender) {
	const collections = 3
	var bytes, cpu float64
	for b.Loop() {
		before := rest()
		allow := c.New(w.Limit, w.Bound)
		w.fill(b, allow)
		bytes += float64(live()) - float64(before)
		start := gcCPU()
		for range collections {
			runtime.GC()
		}
		cpu += (gcCPU() - start) / collections
		runtime.KeepAlive(allow)
	}
	b.ReportMetric(0, "ns/op") // of no interest
	b.ReportMetric(bytes/float64(w.Keys)/float64(b.N), "B/key")
	b.ReportMetric(cpu*1e9/float64(b.N), "gc-cpu-ns")
}

// live returns the bytes of live objects.
func live() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// rest returns the bytes of live objects when no more of them go away: what a contender
// has left to a cleanup, or to a goroutine that has to end, takes some collections.
func rest() uint64 {
	const little, tries, enough = 16 << 10, 50, 3
	last, same := live(), 0
	for range tries {
		cleanups()
		bytes := live()
		if same++; bytes+little <= last {
			same = 0
		}
		if last = bytes; same == enough {
			break
		}
	}
	return last
}

// cleanups waits for a collection and the cleanups that it leads to.
func cleanups() {
	done := make(chan struct{})
	runtime.AddCleanup(new([64]byte), func(done chan struct{}) { close(done) }, done)
	runtime.GC()
	<-done
}

// gcCPU returns the CPU seconds that garbage collection has taken so far.
func gcCPU() float64 {
	sample := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}}
	metrics.Read(sample)
	return sample[0].Value.Float64()
}

// Flood calls each contender with nothing but new keys, ten or more times what its bound
// allows, and reports the live heap on the way: what an attacker who makes up keys can do
// to the memory of a server. Contenders without a bound take part.
func Flood(b *testing.B, contenders []Contender) {
	w := Workload{Load: "flood", Keys: 2_000_000, Par: 1, Bound: 100_000, Limit: modest}
	if testing.Short() {
		w.Keys, w.Bound = 20_000, 1_000
	}
	for _, c := range contenders {
		if !c.skips(w) {
			w.flood(b, c)
		}
	}
}

func (w Workload) flood(b *testing.B, c Contender) {
	const points = 10
	before := rest()
	allow := c.New(w.Limit, w.Bound)
	made := 0
	for i := range points {
		calls := w.Keys / points * (i + 1)
		b.Run(fmt.Sprintf("impl=%s/bound=%s/calls=%s", c.Name, count(w.Bound), count(calls)),
			func(b *testing.B) {
				for ; made < calls; made++ {
					allow(name(made))
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64(live())-float64(before), "heap-B")
			})
	}
	runtime.KeepAlive(allow)
}
