package replay

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/algorithm"
)

const (
	// batchSize is how many requests a contender decides between two readings of the real clock. A
	// reading takes about as long as a decision.
	batchSize = 1024

	// timedBatches is how many batches, up to the latest one, the median time of a decision is of.
	timedBatches = 1001
)

// contest replays a log with several algorithms under one limit. In all of them, the time of a key
// never moves back.
type contest struct {
	limit      *algorithm.Limit
	contenders []*contender
	batch      []request
	largest    uint64 // cost that fits into the burst
}

// request is a request of a batch.
type request struct {
	key       string
	now, cost uint64
}

// newContest returns a contest between the algorithms of o, or nil if there are none.
func newContest(o *Options) (*contest, error) {
	if len(o.Algorithms) == 0 {
		return nil, nil
	}
	if len(o.Rates) != 1 || len(o.Bursts) != 1 {
		return nil, errors.New("--algorithm: want one --rate and one --burst")
	}
	limit, err := algorithm.NewLimit(o.Rates[0].limit(int(o.Bursts[0])))
	if err != nil {
		return nil, fmt.Errorf("--algorithm: %w", err)
	}
	c := &contest{limit: limit, batch: make([]request, 0, batchSize)}
	for i, name := range o.Algorithms {
		if slices.Contains(o.Algorithms[:i], name) {
			return nil, fmt.Errorf("--algorithm: %s is there twice", name)
		}
		limiter, err := algorithm.New(name, limit, o.MaxKeys)
		if err != nil {
			return nil, fmt.Errorf("--algorithm: %w", err)
		}
		c.contenders = append(c.contenders, &contender{
			name: name, limiter: limiter, peaks: newPeaks(limit.Window()),
		})
	}
	return c, nil
}

// add adds a request of a key at a time in nanoseconds since 1970.
func (c *contest) add(key string, tokens float64, now int64) {
	cost := c.limit.Units(tokens)
	if cost <= c.limit.Burst() {
		c.largest = max(c.largest, cost)
	}
	c.batch = append(c.batch, request{key, uint64(now), cost})
	if len(c.batch) == batchSize {
		c.decide()
	}
}

// decide has all contenders decide on the batch.
func (c *contest) decide() {
	for _, one := range c.contenders {
		one.decide(c.batch)
	}
	c.batch = c.batch[:0]
}

// outcomes returns the outcome of each contender.
func (c *contest) outcomes() (all []AlgorithmOutcome) {
	if len(c.batch) > 0 {
		c.decide()
	}
	for _, one := range c.contenders {
		all = append(all, one.outcome(c.limit, c.largest))
	}
	return all
}

// contender is one algorithm of a contest.
type contender struct {
	name    string
	limiter algorithm.Limiter
	peaks   peaks
	results []algorithm.Result

	granted uint64
	refused uint64
	delay   float64 // of all granted requests, in seconds

	batches int
	times   []float64 // of a decision in the latest batches, in nanoseconds
}

// decide decides on a batch, and counts the decisions.
func (c *contender) decide(batch []request) {
	c.results = c.results[:0]
	start := time.Now()
	for i := range batch {
		c.results = append(c.results, c.limiter.Take(batch[i].key, batch[i].now, batch[i].cost))
	}
	c.addTime(float64(time.Since(start).Nanoseconds()) / float64(len(batch)))
	for i, result := range c.results {
		if !result.Granted {
			c.refused++
			continue
		}
		c.granted++
		c.delay += result.Delay.Seconds()
		c.peaks.add(batch[i].key, result.Leaves, batch[i].cost)
	}
}

// addTime adds the mean time of a decision in a batch.
func (c *contender) addTime(ns float64) {
	if len(c.times) < timedBatches {
		c.times = append(c.times, ns)
	} else {
		c.times[c.batches%timedBatches] = ns
	}
	c.batches++
}

// outcome returns the outcome of the contender. The largest cost bounds what a leaky bucket grants
// beyond its rate.
func (c *contender) outcome(l *algorithm.Limit, largest uint64) AlgorithmOutcome {
	stats := c.limiter.Stats()
	window, tenth := c.peaks.most()
	o := AlgorithmOutcome{
		Algorithm: c.name, Granted: c.granted, Refused: c.refused,
		RefusedShare: share(c.refused, c.granted+c.refused),
		MostInWindow: algorithm.Tokens(window), MostInTenth: algorithm.Tokens(tenth),
		BoundInWindow: algorithm.Bound(c.name, l, l.Window()),
		BoundInTenth:  algorithm.Bound(c.name, l, l.Window()/10),
		MostPartial:   c.peaks.partial(),
		LargestState:  stats.MostBytes, Forgotten: stats.Forgotten,
	}
	if c.name == "leaky-bucket" {
		o.BoundInWindow += algorithm.Tokens(largest)
		o.BoundInTenth += algorithm.Tokens(largest)
	}
	if c.granted > 0 {
		o.MeanDelay = c.delay / float64(c.granted)
	}
	if stats.Keys > 0 {
		o.MeanState = float64(stats.Bytes) / float64(stats.Keys)
	}
	if len(c.times) > 0 {
		o.NsPerDecision = slices.Sorted(slices.Values(c.times))[len(c.times)/2]
	}
	return o
}
