package adapt_test

import (
	"cmp"
	"slices"
	"time"
)

// settle is the time that a controller has after a change.
const settle = 10 * time.Second

// score judges a run. Each value is the worst of the phases.
type score struct {
	goodput  float64       // answers, as a share of the answers under the best fixed limit
	settled  float64       // the same from 10 s after each change on
	p99      time.Duration // latency from 10 s after each change on
	converge time.Duration // time until settled and p99 would be good, or never
}

// never means that a run did not converge.
const never = time.Duration(1<<63 - 1)

// score judges the run against the best fixed limits.
func (r *run) score(best map[phase]float64) score {
	s := r.scenario
	worst := score{goodput: 9, settled: 9}
	var begin time.Duration
	for i, p := range s.phases {
		end := begin + p.length
		if i == 0 { // the last client joins
			begin += s.join * time.Duration(s.count()-1)
		}
		settled, p99 := r.between(begin+settle, end)
		goodput, _ := r.between(begin, end)
		worst.goodput = min(worst.goodput, goodput/best[p])
		worst.settled = min(worst.settled, settled/best[p])
		worst.p99 = max(worst.p99, p99)
		worst.converge = max(worst.converge, r.converge(begin, end, best[p]))
		begin = end
	}
	return worst
}

// converge returns the least time in whole seconds from which on the run is good to the end of the
// phase: goodput is at least 95 % of the best, and the p99 of every five seconds within 1.5
// targets.
func (r *run) converge(begin, end time.Duration, best float64) time.Duration {
	const window = 5 * time.Second
	from := begin
	for at := begin; at <= end-window; at += time.Second {
		if _, p99 := r.between(at, at+window); p99 > r.scenario.target*3/2 {
			from = at + time.Second
		}
	}
	for ; from <= end-settle; from += time.Second {
		if goodput, _ := r.between(from, end); goodput >= 0.95*best {
			return from - begin
		}
	}
	return never
}

func (r *run) between(from, to time.Duration) (goodput float64, p99 time.Duration) {
	var all []time.Duration
	good := 0
	at := func(s sample, t time.Duration) int { return cmp.Compare(s.at, t) }
	for _, samples := range r.samples {
		i, _ := slices.BinarySearchFunc(samples, from, at)
		j, _ := slices.BinarySearchFunc(samples, to, at)
		for _, x := range samples[i:j] {
			if x.good {
				good++
			}
			if x.good || x.latency > r.scenario.target { // not a refusal by the downstream
				all = append(all, x.latency)
			}
		}
	}
	if len(all) > 0 {
		slices.Sort(all)
		p99 = all[len(all)*99/100]
	}
	return float64(good) / (to - from).Seconds(), p99
}

// bestFixed returns the goodput of the best fixed limit in each phase: of all limits from 60 %
// to 100 % of the capacity in steps of 2 %, the highest whose p99 is within the target. If no limit
// keeps the target, it is the limit of 98 %.
func bestFixed(s *scenario, seed uint64) map[phase]float64 {
	best := make(map[phase]float64)
	for _, p := range s.phases {
		if _, known := best[p]; !known {
			best[p] = bestFixedIn(s, p, seed)
		}
	}
	return best
}

func bestFixedIn(s *scenario, p phase, seed uint64) float64 {
	steady := *s
	steady.join = 0
	p.length = 40 * time.Second
	steady.phases = []phase{p}
	try := func(percent int) (goodput float64, p99 time.Duration) {
		rate := s.capacity(p) * float64(percent) / 100 / float64(s.count())
		return simulateFixed(&steady, seed, rate).between(settle, p.length)
	}
	low, high := 30, 51 // halves of the percentages; p99 rises with the limit
	for high-low > 1 {
		middle := (low + high) / 2
		if _, p99 := try(2 * middle); p99 <= s.target {
			low = middle
		} else {
			high = middle
		}
	}
	goodput, p99 := try(2 * low)
	if p99 > s.target {
		goodput, _ = try(98)
	}
	return goodput
}
