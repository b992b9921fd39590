package suggest

import "slices"

// Refusals returns, for each burst, how many of the clients that matter are ever refused at a rate,
// and how many requests of all clients are refused. The bursts are in ascending order. Both are
// exact. requests is nil if the times of the requests were not kept.
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
	for client := range r.all {
		for i, burst := range bursts {
			requests[i] += r.Refused(client, rate, burst)
		}
	}
	return clients, requests
}

// Refused returns how many requests of a client a burst refuses at a rate. It is 0 if the times of
// the requests were not kept.
func (r *Result) Refused(client uint32, rate int, burst uint64) (refused uint64) {
	if !r.timed || r.Need(client, rate) <= burst {
		return 0
	}
	times := r.timesOf(client)
	coarse := coarseness(burst)
	token := finest / coarse
	capacity := burst * token
	clock := &r.clocks[rate]
	deficit, latest := uint64(0), times[0]
	before := clock.at(latest - r.start)
	for _, t := range times {
		if t > latest {
			shown := clock.at(t - r.start)
			deficit -= min(deficit, shown.since(before, coarse))
			latest, before = t, shown
		}
		if deficit+token <= capacity {
			deficit += token
		} else {
			refused++
		}
	}
	return refused
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
	t.Burst = max(burst, r.between(r.start, middle, rate).ForClients(0, share))
	second := r.between(middle, r.now+1, rate)
	refused, _ := second.Refusals(0, []uint64{t.Burst})
	t.Refused, t.Clients = refused[0], second.Matter()
	return t, true
}

// between returns what the requests of an interval need at a rate, with buckets that are full at
// its begin.
func (r *Result) between(from, to int64, rate int) *Result {
	clocks := r.clocks[rate : rate+1]
	c := &Collector{clocks: clocks, slowest: clocks[0].pace}
	c.read(r.start)
	for client := range r.all {
		for _, t := range r.timesOf(client) {
			if from <= t && t < to {
				c.Add(client, t)
			}
		}
	}
	return c.Result(r.kinds)
}
