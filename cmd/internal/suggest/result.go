package suggest

import (
	"math/bits"
	"slices"
)

// Result has the bursts that the keys of a log need.
type Result struct {
	// Clients has the keys, in no order. If there were more than fit, they are a sample: about
	// one in OneIn of them, by a hash.
	Clients []*Client
	OneIn   uint64
	// Requests is the number of requests of the keys in the sample, and of the keys that left it.
	Requests uint64

	timed  bool // whether the clients have the times of their requests
	start  int64
	clocks []clock
	cost   uint64 // of each request in tokens, if costs are fixed
}

// Result returns the bursts. The Collector must not be used any more.
func (c *Collector) Result() *Result {
	r := &Result{
		OneIn: c.clients.OneIn(), Requests: c.requests, timed: c.timed,
		start: c.start, clocks: c.clocks, cost: c.cost,
	}
	for _, cl := range c.clients.Values {
		r.Clients = append(r.Clients, cl)
	}
	return r
}

// InSample reports whether a sample that has one in oneIn of the keys has a key, if the key occurs.
func InSample(key string, oneIn uint64) bool {
	return bits.LeadingZeros64(hashOf(key)) >= bits.TrailingZeros64(oneIn)
}

// Need returns the least burst with which a client is never refused at a rate, None if there is
// none.
func (r *Result) Need(cl *Client, rate int) uint64 {
	return uint64(cl.curves[min(rate, len(cl.curves)-1)].need)
}

// ForClients returns the least burst with which at most a share of the clients, from 0 to 1, is
// ever refused at a rate, None if there is none.
func (r *Result) ForClients(rate int, share float64) uint64 {
	needs := r.needs(rate)
	if n := len(needs) - int(part(share, uint64(len(needs)))); n > 0 {
		return needs[n-1]
	}
	return 1
}

// needs returns the least bursts of all clients at a rate, in ascending order.
func (r *Result) needs(rate int) []uint64 {
	needs := make([]uint64, 0, len(r.Clients))
	for _, cl := range r.Clients {
		needs = append(needs, r.Need(cl, rate))
	}
	slices.Sort(needs)
	return needs
}

// part returns a share of n, rounded down. A share such as 0.1 % of 1,000 is 1, although its binary
// fraction may be a little less.
func part(share float64, n uint64) uint64 {
	const slack = 1e-12
	return uint64(share * (1 + slack) * float64(n))
}

// Refused returns the clients that are refused with a burst at a rate.
func (r *Result) Refused(rate int, burst uint64) (refused []*Client) {
	for _, cl := range r.Clients {
		if r.Need(cl, rate) > burst {
			refused = append(refused, cl)
		}
	}
	return refused
}
