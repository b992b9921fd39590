package simulate

import (
	"cmp"
	"slices"
	"time"
)

// settle is the time that a controller has after a change.
const settle = 10 * time.Second

// Score judges a run. Each value is the worst of the phases.
type Score struct {
	Goodput  float64       // answers, as a share of the answers under the best fixed limit
	Settled  float64       // the same from 10 s after each change on
	P99      time.Duration // latency from 10 s after each change on
	Converge time.Duration // time until Settled and P99 would be good, or Never
	Fairness float64       // Jain's index of the rates of the clients, in the last phase
}

// Never means that a run did not converge.
const Never = time.Duration(1<<63 - 1)

// Score judges the run against the best fixed limits.
func (r *Run) Score(best Best) Score {
	s := r.Scenario
	worst := Score{Goodput: 9, Settled: 9, Fairness: r.fairness()}
	var begin time.Duration
	for i, p := range s.Phases {
		end := begin + p.Length
		if i == 0 { // the last client joins
			begin += s.Join * time.Duration(s.clients()-1)
		}
		settled, p99 := r.between(begin+settle, end)
		goodput, _ := r.between(begin, end)
		worst.Goodput = min(worst.Goodput, goodput/best[p])
		worst.Settled = min(worst.Settled, settled/best[p])
		worst.P99 = max(worst.P99, p99)
		worst.Converge = max(worst.Converge, r.converge(begin, end, best[p]))
		begin = end
	}
	return worst
}

// converge returns the least time in whole seconds from which on the run is good to the end of the
// phase: goodput is at least 95 % of the best, and the p99 of every five seconds within 1.5
// targets.
func (r *Run) converge(begin, end time.Duration, best float64) time.Duration {
	const window = 5 * time.Second
	from := begin
	for at := begin; at <= end-window; at += time.Second {
		if _, p99 := r.between(at, at+window); p99 > r.Scenario.Target*3/2 {
			from = at + time.Second
		}
	}
	for ; from <= end-settle; from += time.Second {
		if goodput, _ := r.between(from, end); goodput >= 0.95*best {
			return from - begin
		}
	}
	return Never
}

// between returns the answers a second and the p99 between two instants.
func (r *Run) between(from, to time.Duration) (goodput float64, p99 time.Duration) {
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
			if x.good || x.latency > r.Scenario.Target { // not a refusal by the downstream
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

// P99 returns the 99th percentile of the latency in each second of the run.
func (r *Run) P99() (all []time.Duration) {
	for at := time.Duration(0); at < r.Scenario.length(); at += time.Second {
		_, p99 := r.between(at, at+time.Second)
		all = append(all, p99)
	}
	return all
}

// fairness returns Jain's index of the mean rates in the last phase: 1 if they are equal.
func (r *Run) fairness() float64 {
	last := r.Scenario.Phases[len(r.Scenario.Phases)-1].Length
	var sum, squares float64
	for _, rates := range r.Rates {
		m := mean(rates[len(rates)-int(last/Step):])
		sum, squares = sum+m, squares+m*m
	}
	return sum * sum / (float64(len(r.Rates)) * squares)
}

// Best is the goodput of the best fixed limit in each phase.
type Best map[Phase]float64

// BestFixed returns the goodput of the best fixed limits: in each phase, of all limits from 60 %
// to 100 % of the capacity in steps of 2 %, the highest whose p99 is within the target. If no limit
// keeps the target, it is the limit of 98 %.
func BestFixed(s *Scenario, seed uint64) Best {
	best := make(Best)
	for _, p := range s.Phases {
		if _, known := best[p]; !known {
			best[p] = bestFixed(s, p, seed)
		}
	}
	return best
}

func bestFixed(s *Scenario, p Phase, seed uint64) float64 {
	steady := *s
	steady.Join = 0
	p.Length = 40 * time.Second
	steady.Phases = []Phase{p}
	try := func(percent int) (goodput float64, p99 time.Duration) {
		rate := s.Capacity(p) * float64(percent) / 100 / float64(s.clients())
		return Simulate(&steady, fixed(rate), seed).between(settle, p.Length)
	}
	low, high := 30, 51 // halves of the percentages; p99 rises with the limit
	for high-low > 1 {
		middle := (low + high) / 2
		if _, p99 := try(2 * middle); p99 <= s.Target {
			low = middle
		} else {
			high = middle
		}
	}
	goodput, p99 := try(2 * low)
	if p99 > s.Target {
		goodput, _ = try(98)
	}
	return goodput
}
