package replay

import (
	"fmt"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Options say against what a log is replayed.
type Options struct {
	// Every rate is tried with every burst: all in one pass, each with a limiter of
	// its own.
	Rates  []Rate
	Bursts []Burst
	// Keys name the parts of a key: ip, user, path, host or fields of a JSON log.
	Keys []string
	// IPv6Prefix is how many bits of an IPv6 address make a client, 1 to 128.
	IPv6Prefix int
	// Cost is what a request takes.
	Cost Cost
	// MaxKeys bounds the table of each limiter, and Overflow says what happens to a new
	// key that finds it full of debtors.
	MaxKeys  int
	Overflow tb.Overflow
	// Impl is the implementation of the limiter, cas or mutex.
	Impl string
}

// validate returns an error that says what is wrong with the options.
func (o *Options) validate() error {
	if n := len(o.Rates) * len(o.Bursts); n > maxSweep {
		return fmt.Errorf("sweep: %d pairs of rate and burst, want at most %d", n, maxSweep)
	}
	_, _, err := newKeyer(o.Keys, o.IPv6Prefix)
	return err
}

// replayer replays requests, one by one. It is not safe for concurrent use: the order
// of the lines is the order of the decisions.
type replayer struct {
	opts   Options
	extra  []string // the JSON fields that keyer and cost look at, in their order
	keyer  *keyer
	clock  logClock // of all limiters
	trials []*trial // every rate with every burst, bursts varying faster

	clients  clients
	span     span
	standIns uint64 // requests whose cost field had no usable value

	// Only a single limit is reported in such detail, so these are of the first trial.
	ranking  ranking
	timeline *timeline
}

// span is the time that a log covers, and how far its lines are out of order.
type span struct {
	requests          uint64
	first, last, prev int64  // earliest and latest time, and that of the line before
	steps             uint64 // lines whose time is before that of the line before
	farthest          int64  // the longest of these steps, in nanoseconds
}

// newReplayer returns a replayer that has seen nothing yet.
func newReplayer(o Options) (*replayer, error) {
	r := &replayer{
		opts: o, clients: newClients(maxClients), ranking: newRanking(maxTracked), timeline: newTimeline(),
	}
	var err error
	if r.keyer, r.extra, err = newKeyer(o.Keys, o.IPv6Prefix); err != nil {
		return nil, err
	}
	if o.Cost.field != "" {
		r.extra = append(r.extra, o.Cost.field)
	}
	for _, rate := range o.Rates {
		for _, burst := range o.Bursts {
			if err := r.addTrial(rate, burst); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// addTrial adds a limit to be tried.
func (r *replayer) addTrial(rate Rate, burst Burst) error {
	l, err := newLimiter(r.opts.Impl, rate.limit(int(burst)), tb.WithClock(r.clock.read),
		tb.WithMaxKeys(r.opts.MaxKeys), tb.WithOverflow(r.opts.Overflow))
	r.trials = append(r.trials, &trial{rate: rate, burst: burst, limiter: l})
	return err
}

// add replays one request: every limit decides on it, and what they decide is counted.
//
// The key is looked up in ranking even where its statistics are not reported, for that has
// it as a string already, which saves an allocation for each request of a known client.
func (r *replayer) add(rec *accesslog.Record) error {
	r.span.add(rec.Time)
	r.clock.now = time.Unix(0, rec.Time)
	key := r.keyer.of(rec)
	cost, standIn := r.opts.Cost.of(rec)
	if standIn {
		r.standIns++
	}
	client := r.ranking.see(key)
	var refused uint64
	for i, t := range r.trials {
		d, err := t.decide(client.Key, cost)
		if err != nil {
			return err
		}
		if !d.Allowed {
			refused |= 1 << i
		}
		if i == 0 {
			r.detail(client, rec.Time/int64(time.Second), d)
		}
	}
	r.clients.add(key, refused)
	return nil
}

// detail adds a decision of the first limit to the statistics.
func (r *replayer) detail(client *tracked, second int64, d tb.Decision) {
	r.timeline.add(second, d.Allowed)
	if !d.Allowed {
		client.Count++
	}
	client.Value.add(second, d.Allowed)
	client.Value.levels.add(second, r.timeline.shift, d.Remaining)
}

// add notes the time of a request.
func (s *span) add(ns int64) {
	if s.requests == 0 {
		s.first, s.last, s.prev = ns, ns, ns
	}
	s.requests++
	s.first, s.last = min(s.first, ns), max(s.last, ns)
	if ns < s.prev {
		s.steps++
		s.farthest = max(s.farthest, s.prev-ns)
	}
	s.prev = ns
}
