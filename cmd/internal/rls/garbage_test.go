package rls

import (
	"runtime"
	"runtime/debug"
	gometrics "runtime/metrics"
	"testing"
)

// The percentage follows the memory in use: it is set again after each run of the collector.
func TestCollectSeldom(t *testing.T) {
	t.Setenv("GOGC", "")
	const unset = 77 // garbagePercent returns at least 100
	defer debug.SetGCPercent(debug.SetGCPercent(unset))
	collectSeldom() // another test may have called it
	sample := []gometrics.Sample{{Name: "/gc/gogc:percent"}}
	collected := func() uint64 {
		debug.SetGCPercent(unset)
		for {
			runtime.GC()
			runtime.Gosched() // finalizers run a little later
			if gometrics.Read(sample); sample[0].Value.Uint64() != unset {
				return sample[0].Value.Uint64()
			}
		}
	}
	collected()
	inUse := make([]byte, 2*leastGarbage)
	collected() // perhaps by a finalizer of a run before inUse
	if got := collected(); got != 100 {
		t.Errorf("%d %% with %d MiB in use, want 100", got, len(inUse)>>20)
	}
	runtime.KeepAlive(inUse)
}
