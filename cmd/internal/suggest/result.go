package suggest

import "slices"

// Result has the bursts that the clients of a log need.
type Result struct {
	*Collector
	kinds   []Kind      // by client
	matters [Kinds]bool // whether the clients of a kind count for a share
	times   []int64     // by client, in their order, if they are kept
	first   []uint32    // where the times of each client begin, and the end

	ofKind [Kinds][]uint64 // of needs
}

// Result returns the bursts. The kinds are the ones of all clients of a log of which c may have a
// part. They decide which kinds matter. Nothing may be added to c any more.
func (c *Collector) Result(kinds []Kind) *Result {
	r := &Result{Collector: c, kinds: kinds}
	var counts [Kinds]uint64
	for _, kind := range kinds {
		counts[kind]++
	}
	for kind := range Kinds {
		r.matters[kind] = kind.Matters(counts)
	}
	if c.timed {
		r.sortTimes()
	}
	return r
}

// sortTimes puts the times of each client side by side.
func (r *Result) sortTimes() {
	r.first = make([]uint32, len(r.states)+1)
	for _, k := range r.kept {
		for _, client := range k.clients[:k.n] {
			r.first[client+1]++
		}
	}
	for i := range r.states {
		r.first[i+1] += r.first[i]
	}
	next := slices.Clone(r.first)
	r.times = make([]int64, r.requests)
	for _, k := range r.kept {
		for i, client := range k.clients[:k.n] {
			r.times[next[client]] = k.times[i]
			next[client]++
		}
	}
	r.kept = nil
}

// timesOf returns the times of the requests of a client, if they were kept.
func (r *Result) timesOf(client uint32) []int64 {
	return r.times[r.first[client]:r.first[client+1]]
}

// all calls a function with each client that has a request.
func (r *Result) all(yield func(client uint32) bool) {
	for i := range r.states {
		if r.states[i].alike.need > 0 && !yield(uint32(i)) {
			return
		}
	}
}

// Need returns the least burst with which a client is never refused at a rate, None if there is
// none. It is 0 for a client without a request.
func (r *Result) Need(client uint32, rate int) uint64 {
	if int(client) >= len(r.states) {
		return 0
	}
	cv := &r.states[client].alike
	if cv.row > 0 {
		cv = &r.rows[cv.row-1][rate]
	}
	return uint64(cv.need)
}

// Requests returns the number of requests.
func (r *Result) Requests() uint64 { return r.requests }

// Timed reports whether the times of the requests were kept, so that refused ones can be counted.
func (r *Result) Timed() bool { return r.timed }

// Clients returns how many clients there are, and how many of them are ever refused with a burst at
// a rate.
func (r *Result) Clients(rate int, burst uint64) (all, refused uint64) {
	for client := range r.all {
		if all++; r.Need(client, rate) > burst {
			refused++
		}
	}
	return all, refused
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

// needs returns the least bursts of the clients that matter at a rate, by kind, until the next
// call.
func (r *Result) needs(rate int) [Kinds][]uint64 {
	for kind := range r.ofKind {
		r.ofKind[kind] = r.ofKind[kind][:0]
	}
	for client := range r.all {
		if kind := r.kinds[client]; r.matters[kind] {
			r.ofKind[kind] = append(r.ofKind[kind], r.Need(client, rate))
		}
	}
	return r.ofKind
}

// part returns a share of n, rounded down. A share such as 0.1 % of 1,000 is 1, although its binary
// fraction may be a little less.
func part(share float64, n uint64) uint64 {
	const slack = 1e-12
	return uint64(share * (1 + slack) * float64(n))
}

// Matters reports whether a client counts for a share of the clients.
func (r *Result) Matters(client uint32) bool { return r.matters[r.kinds[client]] }

// Matter returns how many clients count for a share of the clients.
func (r *Result) Matter() (n uint64) {
	for client := range r.all {
		if r.Matters(client) {
			n++
		}
	}
	return n
}

// Kind is a kind of client.
type Kind uint8

// The kinds of clients. People ask for several paths. Attackers use many addresses, each for one
// request, or for one path such as /login; so does a client of an API.
const (
	SeveralPaths Kind = iota
	OnePath
	OneRequest
	Kinds // how many there are
)

// Matters reports whether a kind counts for a share of the clients, by the number of clients of
// each kind: the clients with several paths always, and the ones with one path if there are as
// many, as in the log of an API. A client with one request counts if there is no other one.
func (k Kind) Matters(clients [Kinds]uint64) bool {
	switch k {
	case SeveralPaths:
		return true
	case OnePath:
		return clients[OnePath] >= clients[SeveralPaths]
	}
	return clients[OnePath]+clients[SeveralPaths] == 0
}
