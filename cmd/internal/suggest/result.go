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

	matters    [Kinds]bool // whether the clients of a kind count for a share
	timed      bool        // whether the clients have the times of their requests
	start, end int64
	clocks     []clock
	cost       uint64 // of each request in tokens, if costs are fixed
}

// Result returns the bursts. The kinds of clients are the ones in whole, which has all requests of a
// log of which c may have a part. The Collector must not be used any more.
func (c *Collector) Result(whole *Collector) *Result {
	r := &Result{
		OneIn: c.clients.OneIn(), Requests: c.requests, timed: c.timed,
		start: c.start, end: c.now, clocks: c.clocks, cost: c.cost,
	}
	var counts [Kinds]uint64
	for _, cl := range whole.clients.Values {
		counts[cl.Visits.Kind()]++
	}
	for kind := range Kinds {
		r.matters[kind] = kind.Matters(counts)
	}
	for _, cl := range c.clients.Values {
		cl.Kind = whole.clients.Values[cl.Key].Visits.Kind()
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

// ForClients returns the least burst with which at most a share, from 0 to 1, of the clients of each
// kind that matters is ever refused at a rate, None if there is none.
func (r *Result) ForClients(rate int, share float64) uint64 {
	burst := uint64(1)
	for _, needs := range r.needs(rate) {
		slices.Sort(needs)
		if n := len(needs) - int(part(share, uint64(len(needs)))); n > 0 {
			burst = max(burst, needs[n-1])
		}
	}
	return burst
}

// needs returns the least bursts of the clients that matter at a rate, by kind.
func (r *Result) needs(rate int) (needs [Kinds][]uint64) {
	for _, cl := range r.Clients {
		if r.Matters(cl) {
			needs[cl.Kind] = append(needs[cl.Kind], r.Need(cl, rate))
		}
	}
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

// Matters reports whether a client counts for a share of the clients.
func (r *Result) Matters(cl *Client) bool { return r.matters[cl.Kind] }

// Matter returns how many clients count for a share of the clients.
func (r *Result) Matter() (n uint64) {
	for _, cl := range r.Clients {
		if r.Matters(cl) {
			n++
		}
	}
	return n
}
