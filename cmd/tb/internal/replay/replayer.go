package replay

import (
	"context"
	"fmt"
	"iter"
	"net/netip"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/suggest"
	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/internal/compositekey"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// Options are the limits of a replay and how they apply to a request.
type Options struct {
	// Rates and Bursts are the limits. Every rate is tried with every burst, all in one
	// pass, each pair with a limiter of its own.
	Rates  []Rate
	Bursts []Burst
	// Keys name the parts of a key: ip, user, path, host or fields of a JSON log.
	Keys []string
	// Trusted are the networks of proxies whose X-Forwarded-For is believed. IPv6Prefix is
	// how many bits of an IPv6 address make a client, 1 to 128.
	Trusted    []netip.Prefix
	IPv6Prefix int
	// Cost is the cost of a request.
	Cost Cost
	// Suggest asks for a suggestion at each of the Rates. There are no Bursts then.
	Suggest Share
	// ByPath asks for limits of the paths with the most requests, too. Export is what the suggestion
	// is printed as: policy, caddy, nginx or envoy, or empty for a policy of one rule.
	ByPath bool
	Export string
	// FirstLook has the text begin with the first requests, for a user who does not know the log yet.
	FirstLook bool
	// Policy is replayed instead of limits, if it is not nil.
	Policy *httplimit.Policy
	// MaxKeys bounds the table of each limiter. Overflow applies to a new key while no
	// bucket in the table is full.
	MaxKeys  int
	Overflow tb.Overflow
	// Reference replays with tb/mutex, which the tests compare tb/cas with.
	Reference bool
	// Algorithms name the algorithms to compare under the only limit. It may be empty.
	Algorithms []string
	// AllowMalformed accepts a log of which most lines are malformed.
	AllowMalformed bool
	// Picture keeps what WriteSVG and WriteHTML need, for a single limit or a suggestion.
	Picture bool
}

// validate returns an error if the sweep is too large or the key has a mistake.
func (o *Options) validate() error {
	if n := len(o.Rates) * len(o.Bursts); n > maxSweep {
		return fmt.Errorf("sweep: %d pairs of rate and burst, want at most %d", n, maxSweep)
	}
	if _, err := newContest(o); err != nil {
		return err
	}
	_, _, err := newKeyer(o)
	return err
}

// replayer replays requests, one by one, in the order of their times. It is not safe for concurrent
// use.
type replayer struct {
	keyer   *keyer
	proxies proxies
	firsts  []FirstRequest
	cost    Cost
	extra   []string // the JSON fields that keyer and cost need, in their order
	queue   queue
	now     time.Time // of the current request, which is the clock of all limiters
	trials  []*trial  // every rate with every burst, bursts varying faster

	// inLines is the only trial as it would be if requests came in the order of the lines. It is nil
	// as long as they do, and if there are several trials.
	inLines     *trial
	fork        func() (*trial, error) // returns a copy of the only trial; nil if there are several
	late        uint64                 // requests that were decided after later ones
	lateRefused uint64                 // those that the only trial refused

	paths     *pathGroups        // nil without Options.ByPath
	found     *suggest.Result    // of the collector at the end
	collector *suggest.Collector // nil unless a suggestion is asked for
	policy    *policyReplay      // nil unless a policy is replayed

	keys     keyCounter // empty with a collector, which counts them itself
	span     span
	standIns uint64 // requests whose cost field had no usable value

	// Only a report on a single limit has these details. They are of the first trial.
	ranking ranking
	contest *contest // nil without Options.Algorithms

	// These are nil without Options.Picture. A suggestion has no lens, because it decides nothing.
	timeline *timeline
	lens     *lens

	allowMalformed bool
}

// newReplayer returns a replayer without any request.
func newReplayer(o Options) (*replayer, error) {
	r := &replayer{
		cost: o.Cost, keys: newKeyCounter(maxDistinct), ranking: newRanking(maxTracked),
		queue: queue{most: queueRequests}, allowMalformed: o.AllowMalformed,
	}
	var err error
	if r.keyer, r.extra, err = newKeyer(&o); err != nil {
		return nil, err
	}
	if r.contest, err = newContest(&o); err != nil {
		return nil, err
	}
	if o.Cost.field != "" {
		r.extra = append(r.extra, o.Cost.field)
	}
	if o.Suggest.isSet() {
		r.collector = newCollector(&o)
		if o.ByPath {
			r.paths = &pathGroups{collect: func() *suggest.Collector { return newCollector(&o) }}
		}
	}
	if o.Policy != nil {
		if r.policy, err = newPolicyReplay(&o, func() time.Time { return r.now }); err != nil {
			return nil, err
		}
		r.extra = r.policy.facts.place(r.extra)
	}
	for _, rate := range o.Rates {
		for _, burst := range o.Bursts {
			l, err := r.newLimiter(&o, rate.limit(int(burst)))
			if err != nil {
				return nil, err
			}
			r.trials = append(r.trials, &trial{rate: rate, burst: burst, limiter: l})
		}
	}
	if len(r.trials) == 1 {
		r.fork = func() (*trial, error) {
			only := r.trials[0]
			l, err := r.newLimiter(&o, only.rate.limit(int(only.burst)))
			if err != nil {
				return nil, err
			}
			r.now = time.Unix(0, r.queue.latest)
			return &trial{limiter: l, refused: only.refused}, l.Restore(only.limiter.Snapshot())
		}
	}
	if o.Picture {
		r.timeline = newTimeline()
		if len(r.trials) > 0 {
			r.lens = newLens(r.trials[0].rate, r.trials[0].burst)
		}
	}
	return r, nil
}

// read reads a request in a log of some format. It is decided when it has its place among the
// requests of the next lines.
func (r *replayer) read(rec *accesslog.Record, format accesslog.Format) error {
	inOrder := r.span.add(rec.Time)
	if r.proxies.lines < proxyLines {
		r.proxies.add(rec)
	}
	if len(r.firsts) < shownFirst {
		r.firsts = append(r.firsts, r.firstRequest(rec))
	}
	var text []byte
	var cost float64
	if r.policy != nil {
		peer, forwarded := r.keyer.origin(rec)
		text = r.policy.pack(rec, format, peer, forwarded)
	} else {
		var standIn bool
		text = r.keyer.key(rec)
		if cost, standIn = r.cost.tokens(rec); standIn {
			r.standIns++
		}
		if r.paths != nil {
			text = r.paths.pack(text, rec.Path)
		}
	}
	if !inOrder && r.inLines == nil && r.fork != nil {
		if err := r.startInLines(); err != nil {
			return err
		}
	}
	if r.inLines != nil {
		r.now = time.Unix(0, rec.Time)
		if _, err := r.inLines.decide(string(text), cost); err != nil {
			return err
		}
	}
	if r.queue.add(rec.Time, cost, text) {
		return r.pass((r.queue.len() + 1) / 2)
	}
	return nil
}

// pass decides the n earliest requests of the queue.
func (r *replayer) pass(n int) error {
	if r.paths != nil && !r.paths.chosen {
		r.paths.choose(&r.queue)
	}
	return r.queue.pass(n, r.decide)
}

// startInLines begins to decide the requests in the order of their lines, too. So far they are in
// that order.
func (r *replayer) startInLines() (err error) {
	if r.inLines, err = r.fork(); err != nil {
		return err
	}
	for _, p := range r.queue.sorted {
		r.now = time.Unix(0, p.time)
		if _, err := r.inLines.decide(string(r.queue.text(p)), p.cost); err != nil {
			return err
		}
	}
	return nil
}

// end decides the requests that wait for earlier ones.
func (r *replayer) end() error {
	err := r.pass(r.queue.len())
	if r.collector != nil {
		r.found = r.collector.Result()
	}
	return err
}

// decide has every limit decide on a request, and counts the decisions.
//
// The ranking is used even if it is not reported: it has the key as a string, which saves
// an allocation for each request of a tracked key.
func (r *replayer) decide(p pending, text []byte, late bool) error {
	r.now = time.Unix(0, p.time)
	if late {
		r.late++
	}
	switch {
	case r.policy != nil:
		r.policy.decide(text)
		return nil
	case r.collector != nil:
		if r.paths != nil {
			var group []byte
			text, group = unpackGroup(text)
			r.paths.add(text, group, p.time, p.cost)
		}
		r.collector.Add(text, p.time, p.cost)
		if r.timeline != nil {
			r.timeline.add(p.time/int64(time.Second), true)
		}
		return nil
	}
	entry := r.ranking.track(text)
	var refused uint64
	for i, t := range r.trials {
		d, err := t.decide(entry.Key, p.cost)
		if err != nil {
			return err
		}
		if !d.Allowed {
			refused |= 1 << i
		}
		if i == 0 {
			r.addDetails(entry, p.time, p.cost, d)
		}
	}
	if late && refused != 0 {
		r.lateRefused++
	}
	r.keys.add(text, refused)
	if r.contest != nil {
		r.contest.add(entry.Key, p.cost, p.time)
	}
	return nil
}

// clients yields the clients in a part of the keys, with their numbers of requests.
func (r *replayer) clients(part int) iter.Seq2[string, uint64] {
	client := func(key string) string { return compositekey.Parts(key)[part] }
	return func(yield func(string, uint64) bool) {
		if r.found != nil {
			for _, c := range r.found.Clients {
				if !yield(client(c.Key), c.Requests) {
					return
				}
			}
			return
		}
		for e := range r.ranking.All() {
			if !yield(client(e.Key), e.Value.requests) {
				return
			}
		}
	}
}

// addDetails counts a decision of the first limit at a time.
func (r *replayer) addDetails(entry *tracked, ns int64, cost float64, d tb.Decision) {
	second := ns / int64(time.Second)
	if !d.Allowed {
		entry.Count++
	}
	entry.Value.add(second, d.Allowed)
	if r.timeline != nil {
		r.timeline.add(second, d.Allowed)
		r.lens.add(&entry.Value.zoom, ns, cost, d)
	}
}

// span is the time that a log covers, and how far its lines are out of order. Times are in
// nanoseconds since 1970.
type span struct {
	requests    uint64
	first, last int64  // the earliest and the latest time
	previous    int64  // the time of the line before
	stepsBack   uint64 // lines whose time is before the time of the line before
	longestStep int64  // the longest step back, in nanoseconds
}

// add counts a request at a time, and reports whether it is in order.
func (s *span) add(ns int64) (inOrder bool) {
	if s.requests == 0 {
		s.first, s.last, s.previous = ns, ns, ns
	}
	s.requests++
	s.first, s.last = min(s.first, ns), max(s.last, ns)
	if inOrder = ns >= s.previous; !inOrder {
		s.stepsBack++
		s.longestStep = max(s.longestStep, s.previous-ns)
	}
	s.previous = ns
	return inOrder
}

// limiter has the calls that a replay needs. A whole cost is exact in a float64, so
// AllowCost serves all costs.
type limiter interface {
	AllowCost(ctx context.Context, key string, cost float64) (tb.Decision, error)
	Stats() tb.Stats
	Snapshot() iter.Seq2[string, tb.State]
	Restore(iter.Seq2[string, tb.State]) error
}

func (r *replayer) newLimiter(o *Options, limit tb.Limit) (limiter, error) {
	opts := []tb.Option{
		tb.WithClock(func() time.Time { return r.now }),
		tb.WithMaxKeys(o.MaxKeys), tb.WithOverflow(o.Overflow),
	}
	if o.Reference {
		return mutex.New[string](limit, opts...)
	}
	return cas.New[string](limit, opts...)
}

// trial is one limit under trial, with the number of requests by decision.
type trial struct {
	rate    Rate
	burst   Burst
	limiter limiter

	granted      uint64
	refused      uint64
	neverGranted uint64 // the refused requests whose cost is above the burst
}

// decide takes the tokens of a request, and counts the decision.
func (t *trial) decide(key string, cost float64) (tb.Decision, error) {
	d, err := t.limiter.AllowCost(context.Background(), key, cost)
	if err != nil {
		return d, fmt.Errorf("cost %v: %w", cost, err)
	}
	if d.Allowed {
		t.granted++
		return d, nil
	}
	t.refused++
	if d.RetryAfter == tb.Never {
		t.neverGranted++
	}
	return d, nil
}
