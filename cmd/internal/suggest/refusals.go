package suggest

import "slices"

// Refusals returns, for each burst, how many of the clients that matter are ever refused at a rate,
// and how many requests of all clients are refused. The bursts are in ascending order. Both are
// exact. requests is nil if the times of the requests were not kept, or if the costs are not fixed.
func (r *Result) Refusals(rate int, bursts []uint64) (clients, requests []uint64) {
	byKind := r.needs(rate)
	needs := slices.Concat(byKind[:]...)
	slices.Sort(needs)
	for _, burst := range bursts {
		enough, _ := slices.BinarySearch(needs, burst+1)
		clients = append(clients, uint64(len(needs)-enough))
	}
	if !r.timed {
		return clients, nil
	}
	requests = make([]uint64, len(bursts))
	for _, cl := range r.clients {
		for i, burst := range bursts {
			r.EachRefused(cl, rate, burst, func(int64) { requests[i]++ })
		}
	}
	return clients, requests
}

// EachRefused calls a function with the time of each request of a client that a burst refuses, in
// ns since 1970. It calls none if the times of the requests were not kept.
func (r *Result) EachRefused(cl *Client, rate int, burst uint64, refused func(time int64)) {
	if r.timed && r.Need(cl, rate) > burst {
		r.decide(cl.times, rate, burst, refused)
	}
}

// decide decides requests at some times by a bucket that is full at the first one.
func (r *Result) decide(times []int64, rate int, burst uint64, refused func(time int64)) {
	coarse := coarseness(burst)
	capacity, cost := burst*(finest/coarse), r.cost*(finest/coarse)
	clock := &r.clocks[rate]
	deficit, latest := uint64(0), times[0]
	before := clock.at(latest - r.start)
	for _, t := range times {
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

// Trial is a limit that is found in the first half of the time of a log and tried on the second
// one.
type Trial struct {
	// Burst is the least one with which at most a share of the clients that matter is ever refused in
	// the first half.
	Burst uint64 `json:"burst"`
	// Refused is how many of the Clients that matter in the second half it ever refuses there.
	Refused uint64 `json:"refused"`
	Clients uint64 `json:"clients"`
}

// Try tries a rate with at least a burst. It reports false if the times of the requests were not
// kept.
func (r *Result) Try(rate int, share float64, burst uint64) (t Trial, ok bool) {
	if !r.timed {
		return t, false
	}
	middle := r.start + (r.now-r.start)/2
	t.Burst = r.burstBefore(middle, rate, share, burst)
	for _, cl := range r.clients {
		if cl.latest < middle || !r.Matters(cl) {
			continue
		}
		if t.Clients++; r.Need(cl, rate) > t.Burst {
			refused := false
			n, _ := slices.BinarySearch(cl.times, middle)
			r.decide(cl.times[n:], rate, t.Burst, func(int64) { refused = true })
			if refused {
				t.Refused++
			}
		}
	}
	return t, true
}

// burstBefore returns what ForClients returns for the requests before a time, but at least a burst.
// A client that never needs more than that need not be looked at again.
func (r *Result) burstBefore(end int64, rate int, share float64, least uint64) uint64 {
	needs := [Kinds][]uint64{}
	for _, cl := range r.clients {
		n, _ := slices.BinarySearch(cl.times, end)
		if n == 0 || !r.Matters(cl) {
			continue
		}
		need := r.Need(cl, rate)
		if need > least {
			need = r.needFor(cl.times[:n], rate)
		}
		needs[cl.Kind()] = append(needs[cl.Kind()], need)
	}
	for _, of := range needs {
		least = max(least, forShare(of, share))
	}
	return least
}

// needFor returns the least burst that refuses none of the requests at some times.
func (r *Result) needFor(times []int64, rate int) uint64 {
	var cv curve
	clock := &r.clocks[rate]
	before := clock.at(times[0] - r.start)
	for _, t := range times {
		shown := clock.at(t - r.start)
		cv.deficit -= min(cv.deficit, shown.since(before, 1))
		if before = shown; cv.add(r.cost) {
			cv.raise(shown.units)
		}
	}
	return uint64(cv.need)
}
