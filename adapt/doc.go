// Package adapt lowers the rate of a limiter while the service behind it, the downstream, is slow
// or fails, and raises it again. Use it if the capacity of the downstream is unknown or changes. A
// fixed limit suits a contract, such as a quota per customer.
//
// A [Controller] keeps the rate between a floor and a ceiling, and the 99th percentile of the
// downstream's latency near a target:
//
//	c, err := adapt.New(limiter, adapt.Config{
//		Capacity: 20, Min: 50, Max: 4000, TargetP99: 200 * time.Millisecond,
//	})
//	...
//	if d, err := limiter.Allow(ctx, key); err != nil || !d.Allowed {
//		c.Refused()
//		return
//	}
//	r := c.Begin()
//	// send the request to the downstream, then one of
//	r.Done()
//	r.Fail(retryAfter) // 429, 502, 503, 504 or a timeout
//	r.Cancel()         // the client has left
//
// The limiter may have many keys, all of which have the same rate.
//
// # Algorithm
//
// The controller decides at the end of each interval of 1.25 targets, 50 ms to 2 s. An interval
// with fewer than 20 answers goes on until it has 20 or is eight times as long. A decision
// multiplies the rate by
//
//		passing · (1 + gain·room)
//
//	  - passing is the share of the interval's requests that the downstream got done. While a queue
//	    grows, it brings the rate to the capacity in one interval.
//	  - room is how far the 99th percentile is below the aim, relative to the aim. It is the
//	    percentile of requests that begin now: Little's law predicts their mean latency from the
//	    requests in flight.
//	  - gain is about 0.2 for a cut. For growth it starts at 0.075 after a cut, and rises by half
//	    with each interval, up to 0.5. The rate grows only if the limiter has refused requests.
//
// If more than 2 % of the requests fail, the rate is also cut by the share that fails, at most by
// half. The aim is 105 % of the target at the floor and 70 % at the ceiling, so that of two
// controllers with one downstream the one with the higher rate gives way.
//
// Do not use a controller with a limiter whose callers wait for tokens (Wait or Reserve), or before
// a downstream in which newcomers overtake. docs/adaptive.md has these and other limits of the
// method, and where its parts come from.
//
// A trial finds out whether lower rates help. If the rate fell by 30 % in at least eight intervals
// and neither the 99th percentile nor the failures fell by much, they do not come from the load.
// They are excused for a minute: the rate returns, and the controller keeps the mean below half
// of the aim instead, or tolerates 1.5 times the share of failures.
//
// There is no goroutine and no timer. A call that ends an interval decides, and other calls do
// not wait for it.
//
// # Hostile input
//
//   - If no answers come, an interval lasts eight times as long as usual, and longer if fewer than
//     20 requests begin in it. Then the rate is halved. Without requests it stays.
//   - If every request fails, the rate falls to the floor. The floor must let enough requests pass
//     to notice the recovery.
//   - A Retry-After stops growth for at most 30 s, and only if more requests fail than is
//     tolerated.
//   - A latency above 64 targets counts as 64 targets.
//   - If the clock steps back, the interval starts again. Growth that a Retry-After has stopped may
//     go on, and failures and latencies that a trial has excused count again.
//   - Clients that make more than 1 % of the requests slow can lower the rate. The trial limits
//     the damage to a few intervals a minute, unless they make half of all requests slow. Limit
//     each client by itself first, with a fixed limit. Only granted requests have a latency.
package adapt
