package suggest

import (
	"slices"
	"time"
)

// Refusals returns, for each burst, how many clients are ever refused at a rate, and how many
// requests are refused. The bursts are in ascending order. Both are exact. requests is nil if the
// times of the requests were not kept, or if the costs are not fixed.
func (r *Result) Refusals(rate int, bursts []uint64) (clients, requests []uint64) {
	needs := make([]uint64, 0, len(r.Clients))
	for _, cl := range r.Clients {
		needs = append(needs, r.Need(cl, rate))
	}
	slices.Sort(needs)
	for _, burst := range bursts {
		enough, _ := slices.BinarySearch(needs, burst+1)
		clients = append(clients, uint64(len(needs)-enough))
	}
	if !r.timed {
		return clients, nil
	}
	requests = make([]uint64, len(bursts))
	for _, cl := range r.Clients {
		few, _ := slices.BinarySearch(bursts, r.Need(cl, rate)) // the bursts that are too small
		r.addRefused(requests[:few], cl, rate, bursts)
	}
	return clients, requests
}

// addRefused adds how many requests of a client each of the first bursts refuses.
func (r *Result) addRefused(requests []uint64, cl *Client, rate int, bursts []uint64) {
	coarse := uint64(0) // of the supplies
	for i := range requests {
		if k := coarseness(bursts[i]); k != coarse {
			coarse = k
			r.setSupplies(cl, rate, coarse)
		}
		r.decide(bursts[i], coarse, func(int) { requests[i]++ })
	}
}

// decide calls a function with the index of each request that a burst refuses, after setSupplies.
//
// A late request is decided at the latest time. That is the own time of the bucket, or a request
// was refused then, and this one is refused, too: see DESIGN.md here.
func (r *Result) decide(burst, coarse uint64, refused func(i int)) {
	capacity, cost := burst*(finest/coarse), r.cost*(finest/coarse)
	deficit := uint64(0)
	for i, supplied := range r.supplies {
		deficit -= min(deficit, supplied)
		if deficit+cost <= capacity {
			deficit += cost
		} else {
			refused(i)
		}
	}
}

// RefusedOf returns how many requests of a client a burst refuses at a rate, 0 if the times of the
// requests were not kept.
func (r *Result) RefusedOf(cl *Client, rate int, burst uint64) (n uint64) {
	r.eachRefused(cl, rate, burst, func(int64) { n++ })
	return n
}

// RefusedIn returns how many requests of all clients in a second since 1970 a burst refuses at a
// rate. It is not known if the times of the requests were not kept.
func (r *Result) RefusedIn(second int64, rate int, burst uint64) (n int, known bool) {
	for _, cl := range r.Clients {
		r.eachRefused(cl, rate, burst, func(t int64) {
			if t/int64(time.Second) == second {
				n++
			}
		})
	}
	return n, r.timed
}

// eachRefused calls a function with the time of each request that a burst refuses.
func (r *Result) eachRefused(cl *Client, rate int, burst uint64, refused func(time int64)) {
	if !r.timed || r.Need(cl, rate) <= burst {
		return
	}
	coarse := coarseness(burst)
	r.setSupplies(cl, rate, coarse)
	r.decide(burst, coarse, func(i int) { refused(cl.times[i]) })
}

// setSupplies sets what is supplied before each request of a client, in units of a number of the
// finest.
func (r *Result) setSupplies(cl *Client, rate int, coarse uint64) {
	r.supplies = r.supplies[:0]
	latest := cl.times[0]
	before := r.clocks[rate].at(latest - r.start)
	for _, t := range cl.times {
		supplied := uint64(0)
		if t > latest {
			shown := r.clocks[rate].at(t - r.start)
			supplied = shown.since(before, coarse)
			latest, before = t, shown
		}
		r.supplies = append(r.supplies, supplied)
	}
}
