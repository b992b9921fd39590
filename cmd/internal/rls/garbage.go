package rls

import (
	"os"
	"runtime"
	"runtime/debug"
	gometrics "runtime/metrics"
	"sync"
)

// leastGarbage is how much garbage there is before the collector runs. With less, tables of a few
// keys are so small that it would run after every few MiB, some hundred requests.
const leastGarbage = 64 << 20

// garbagePercent returns how much garbage there is before the collector runs, in percent of the
// memory in use: as much as is in use, but not less than leastGarbage. The runtime counts at least
// 4 MiB as in use.
func garbagePercent(inUse uint64) int {
	return int(max(100, 100*leastGarbage/max(inUse, 4<<20)))
}

// collection waits for the collector: after each run its finalizer is called.
type collection struct{ inUse []gometrics.Sample }

func (c *collection) finish() {
	gometrics.Read(c.inUse)
	sum := uint64(0)
	for _, s := range c.inUse {
		sum += s.Value.Uint64()
	}
	debug.SetGCPercent(garbagePercent(sum))
	runtime.SetFinalizer(c, (*collection).finish)
}

// collectSeldom sets garbagePercent now and after each run of the collector, unless the operator
// has set GOGC.
//
// A large allocation that is never used would do the same in fewer lines. But Go may take it from
// memory that was in use before, and then writes zeros there, so that it is resident.
var collectSeldom = sync.OnceFunc(func() {
	if os.Getenv("GOGC") != "" {
		return
	}
	c := new(collection)
	for _, name := range []string{
		"/gc/heap/live:bytes", "/gc/scan/globals:bytes", "/gc/scan/stack:bytes",
	} {
		c.inUse = append(c.inUse, gometrics.Sample{Name: name})
	}
	c.finish()
})
