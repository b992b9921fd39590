package replay

import (
	"iter"
	"slices"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/cmd/internal/sketch"
	"github.com/seed-181794aa/ratelimit/cmd/internal/suggest"
	"github.com/seed-181794aa/ratelimit/internal/compositekey"
	"github.com/seed-181794aa/ratelimit/tb"
)

// replayer replays requests, one by one, in the order of their times. It is not safe for concurrent
// use.
type replayer struct {
	keyer   *keyer
	proxies proxies
	firsts  []FirstRequest
	habits  habits // of the clients; none under a policy, which has other keys
	cost    Cost
	extra   []string // the JSON fields that keyer and cost need, in their order
	queue   queue
	now     time.Time // of the current request, which is the clock of all limiters
	trials  []*trial  // every rate with every burst, bursts varying faster

	// inLines decides the requests in the order of their lines, so that the report can compare both
	// orders. It is nil as long as the lines are in order, and if there are several trials.
	inLines     *trial
	fork        func() (*trial, error) // returns a copy of the only trial; nil if there are several
	late        uint64                 // requests that were decided after later ones
	lateRefused uint64                 // the ones that the only trial refused

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

	timeline *timeline // nil without Options.Picture

	allowMalformed bool
}

// newReplayer returns a replayer without any request.
func newReplayer(o Options) (*replayer, error) {
	r := &replayer{
		cost: o.Cost, keys: newKeyCounter(maxDistinct), ranking: newRanking(maxTracked),
		queue: newQueue(queueRequests),
		habits: habits{
			hasPath: slices.Contains(o.Keys, "path"), clients: sketch.NewSummary[habit](maxTracked),
		},
		allowMalformed: o.AllowMalformed,
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
			few := o
			few.MaxKeys = min(o.MaxKeys, maxPathKeys)
			r.paths = &pathGroups{collect: func() *suggest.Collector { return newCollector(&few) }}
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
	}
	return r, nil
}

// add adds a request of a log in the given format to the queue. It is decided after the requests
// with earlier times.
func (r *replayer) add(rec *accesslog.Record, format accesslog.Format) error {
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
		r.habits.add(text, rec)
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
		if _, err := r.inLines.decide(r.now, string(text), cost); err != nil {
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
		if _, err := r.inLines.decide(r.now, string(r.queue.text(p)), p.cost); err != nil {
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
		d, err := t.decide(r.now, entry.Key, p.cost)
		if err != nil {
			return err
		}
		if !d.Allowed {
			refused |= 1 << i
		}
		if i == 0 {
			r.addDetails(entry, p.time, d)
		}
	}
	if late && refused != 0 {
		r.lateRefused++
	}
	if entry.Value.isNews(refused) {
		r.keys.add(text, refused)
	}
	if r.contest != nil {
		return r.contest.add(entry.Key, p.cost, p.time)
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
func (r *replayer) addDetails(entry *tracked, ns int64, d tb.Decision) {
	second := ns / int64(time.Second)
	if !d.Allowed {
		entry.Count++
	}
	entry.Value.add(second, d.Allowed)
	if r.timeline != nil {
		r.timeline.add(second, d.Allowed)
	}
}
