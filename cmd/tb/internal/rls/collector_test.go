package rls

import (
	"runtime"
	"runtime/debug"
	gometrics "runtime/metrics"
	"testing"
)

func TestGarbagePercent(t *testing.T) {
	for _, c := range []struct {
		inUse uint64
		want  int
	}{{0, 1600}, {4 << 20, 1600}, {8 << 20, 800}, {64 << 20, 100}, {1 << 30, 100}} {
		if got := garbagePercent(c.inUse); got != c.want {
			t.Errorf("%d %% of %d, want %d", got, c.inUse, c.want)
		}
	}
}

// The percentage follows the memory in use: it is set after each run of the collector.
func TestCollectSeldom(t *testing.T) {
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	collectSeldom()
	sample := []gometrics.Sample{{Name: "/gc/gogc:percent"}}
	percent := func() uint64 {
		runtime.GC()
		gometrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	for percent() < 200 { // finalizers run a little later
		runtime.Gosched()
	}
	inUse := make([]byte, 2*leastGarbage)
	for percent() != 100 {
		runtime.Gosched()
	}
	runtime.KeepAlive(inUse)
}
