// Package mutexstate shows the state of tb/mutex to tests that use it as an oracle. tb/mutex sets
// the functions, so it has no exported method for tests. A limiter is a *mutex.TokenBucket that no
// other goroutine uses.
package mutexstate

var (
	// States returns the state of each bucket of a limiter, to print.
	States func(limiter any) map[string]any

	// Limits returns the present limits of a limiter.
	Limits func(limiter any) any

	// Use makes a limiter use limits that it had before, unless the bucket of key has got a later one
	// since. A call that is under way during a SetLimit may be decided by either limit, also after a
	// call that has already seen the new one. The function that Use returns makes the limiter use the
	// present limits again.
	Use func(limiter, limits any, key string) (restore func())
)
