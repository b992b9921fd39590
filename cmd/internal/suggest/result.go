package suggest

import "slices"

// Result has the bursts that the clients of a log need.
type Result struct {
	*Collector
	matters [Kinds]bool // whether the clients of a kind count for a share
}

// Result returns the bursts. Which kinds of clients matter is decided by whole, which has all
// requests of a log of which c may have a part. Nothing may be added to c any more.
func (c *Collector) Result(whole *Collector) *Result {
	r := &Result{Collector: c}
	var counts [Kinds]uint64
	for _, cl := range whole.clients {
		counts[cl.Kind()]++
	}
	for kind := range Kinds {
		r.matters[kind] = kind.Matters(counts)
	}
	return r
}

// Need returns the least burst with which a client is never refused at a rate, None if there is
// none. It is 0 for a client without a request.
func (r *Result) Need(cl *Client, rate int) uint64 {
	if cl.curves == nil {
		return uint64(cl.alike.need)
	}
	return uint64(cl.curves[rate].need)
}

// Requests returns the number of requests.
func (r *Result) Requests() uint64 { return r.requests }

// Clients returns the number of clients.
func (r *Result) Clients() uint64 { return uint64(len(r.clients)) }

// Timed reports whether the times of the requests were kept, so that refused ones can be counted.
func (r *Result) Timed() bool { return r.timed }

// Refused returns how many clients are ever refused with a burst at a rate.
func (r *Result) Refused(rate int, burst uint64) (n uint64) {
	for _, cl := range r.clients {
		if r.Need(cl, rate) > burst {
			n++
		}
	}
	return n
}

// ForClients returns the least burst with which at most a share, from 0 to 1, of the clients of
// each kind that matters is ever refused at a rate, None if there is none.
func (r *Result) ForClients(rate int, share float64) uint64 {
	burst := uint64(1)
	for _, needs := range r.needs(rate) {
		burst = max(burst, forShare(needs, share))
	}
	return burst
}

// forShare returns the least burst that is less than what at most a share of some clients need.
func forShare(needs []uint64, share float64) uint64 {
	slices.Sort(needs)
	if n := len(needs) - int(part(share, uint64(len(needs)))); n > 0 {
		return needs[n-1]
	}
	return 1
}

// needs returns the least bursts of the clients that matter at a rate, by kind.
func (r *Result) needs(rate int) (needs [Kinds][]uint64) {
	for _, cl := range r.clients {
		if kind := cl.Kind(); r.matters[kind] {
			needs[kind] = append(needs[kind], r.Need(cl, rate))
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

// Matters reports whether a client counts for a share of the clients.
func (r *Result) Matters(cl *Client) bool { return r.matters[cl.Kind()] }

// Matter returns how many clients count for a share of the clients.
func (r *Result) Matter() (n uint64) {
	for _, cl := range r.clients {
		if r.Matters(cl) {
			n++
		}
	}
	return n
}
