package suggest

import "slices"

// Refusals returns, for each burst, how many clients are ever refused at a rate, and how many
// requests are refused. The bursts are in ascending order. Both are exact. requests is nil if the
// times of the requests were not kept, or if the costs are not fixed.
func (r *Result) Refusals(rate int, bursts []uint64) (clients, requests []uint64) {
	needs := r.needs(rate)
	for _, burst := range bursts {
		enough, _ := slices.BinarySearch(needs, burst+1)
		clients = append(clients, uint64(len(needs)-enough))
	}
	if !r.timed {
		return clients, nil
	}
	requests = make([]uint64, len(bursts))
	for _, cl := range r.Clients {
		for i, burst := range bursts {
			r.EachRefused(cl, rate, burst, func(int64) { requests[i]++ })
		}
	}
	return clients, requests
}

// EachRefused calls a function with the time of each request of a client that a burst refuses, in
// ns since 1970. It calls none if the times of the requests were not kept.
//
// A late request is decided at the latest time. That is the own time of the bucket, or a request
// was refused then, and this one is refused, too: see DESIGN.md here.
func (r *Result) EachRefused(cl *Client, rate int, burst uint64, refused func(time int64)) {
	if !r.timed || r.Need(cl, rate) <= burst {
		return
	}
	coarse := coarseness(burst)
	capacity, cost := burst*(finest/coarse), r.cost*(finest/coarse)
	clock := &r.clocks[rate]
	deficit, latest := uint64(0), cl.times[0]
	before := clock.at(latest - r.start)
	for _, t := range cl.times {
		if t > latest {
			shown := clock.at(t - r.start)
			deficit -= min(deficit, shown.since(before, coarse))
			latest, before = t, shown
		}
		if deficit+cost <= capacity {
			deficit += cost
		} else {
			refused(t)
		}
	}
}
