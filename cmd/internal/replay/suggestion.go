package replay

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/cmd/internal/suggest"
	"github.com/seed-181794aa/ratelimit/internal/compositekey"
	"github.com/seed-181794aa/ratelimit/tb"
)

const (
	// minRequests is how many requests a suggestion needs: fewer say nothing about a client.
	minRequests = 100
	// leastRequests is the least burst of a suggested limit, in requests: a person clicks twice.
	leastRequests = 5
	// minSpan is the least time of a log for a suggestion, and minIntervals how many times it is as
	// long as a limit takes to refill a bucket: in less, clients that come back have not come back.
	minSpan      = time.Hour
	minIntervals = 10
)

// Suggestion has the burst that a log needs at each rate, and a limit for it.
type Suggestion struct {
	// Share is the flag --suggest: the part of the clients that matter that the limit may ever refuse.
	Share float64 `json:"share"`
	// TwiceTheBurst is how many clients a limit with twice the burst refuses.
	TwiceTheBurst uint64 `json:"refused_with_twice_the_burst"`
	// Trial is the burst that the first half of the log asks for at the rate of the limit, and whom it
	// refuses in the second half. It is left out if the refused requests are not counted.
	Trial *suggest.Trial `json:"trial,omitempty"`
	// Rates has the bursts, in the order of the rates.
	Rates []RateBurst `json:"rates"`
	// Paths has the limits of the paths with the most requests, if --by-path asks for them.
	Paths []PathLimit `json:"paths"`
	// Together is how many clients that matter the limits of the policy ever refuse, at most the share
	// that --suggest asks for. It is an estimate from one client in TogetherOneIn. Both are left out
	// without --by-path.
	Together      uint64 `json:"together,omitempty"`
	TogetherOneIn uint64 `json:"together_one_in,omitempty"`

	found *suggest.Result // of all requests
}

// RateBurst has the least burst with which at most the share of the clients is ever refused at a
// rate, 0 if that is above 1,073,741,824.
type RateBurst struct {
	// Rate is always with its unit: "5/s", "300/m".
	Rate  string `json:"rate"`
	Burst uint64 `json:"burst"`

	rate Rate
}

// suggestionMode collects requests for a suggestion. It refuses none.
type suggestionMode struct {
	keyed
	o         *Options
	collector *suggest.Collector
	paths     *pathGroups // nil without Options.ByPath
	tooMany   bool        // clients
}

func newSuggestionMode(o *Options) (*suggestionMode, error) {
	k, err := newKeyed(o)
	if err != nil {
		return nil, err
	}
	m := &suggestionMode{keyed: k, o: o, collector: newCollector(o, o.MaxKeys, true)}
	if o.ByPath {
		m.paths = &pathGroups{counts: make(map[string]uint64), collect: func() *suggest.Collector {
			return newCollector(o, min(o.MaxKeys, maxPathKeys), false)
		}}
	}
	return m, nil
}

// newCollector returns a collector of a number of keys, which keeps the times of their requests or
// not.
func newCollector(o *Options, maxKeys int, times bool) *suggest.Collector {
	var limits []tb.Limit
	for _, r := range o.Rates {
		limits = append(limits, r.limit(1))
	}
	cost := uint64(0)
	if times {
		cost = uint64(o.Cost.constant)
	}
	return suggest.New(limits, cost, maxKeys)
}

func (m *suggestionMode) pack(
	rec *accesslog.Record, f accesslog.Format,
) (text []byte, cost float64) {
	text, cost = m.keyed.pack(rec, f)
	if m.paths != nil {
		text = m.paths.pack(text, rec.Path)
	}
	return text, cost
}

func (m *suggestionMode) decide(p pending, text []byte) (granted bool, err error) {
	cost, err := wholeCost(p.cost, "a suggestion")
	if err != nil {
		return false, err
	}
	key := text
	if m.paths != nil {
		var group []byte
		key, group = unpackGroup(text)
		m.paths.add(key, group, p, cost)
	}
	m.collector.Add(key, p.time, cost, p.path)
	if m.tooMany = m.collector.OneIn() > 1; m.tooMany {
		return false, fmt.Errorf("the log has more than %s keys, and a suggestion looks at all of them:"+
			" want a greater --max-keys", grouped(m.o.MaxKeys))
	}
	return true, nil
}

func (m *suggestionMode) fill(res *Result) {
	rep := &res.Report
	found := m.collector.Result(m.collector)
	s := &Suggestion{
		Share: m.o.Suggest.fraction, Rates: []RateBurst{}, Paths: []PathLimit{}, found: found,
	}
	rep.Suggestion, rep.KeysExact = s, !m.tooMany
	rep.Keys = uint64(len(found.Clients)) * found.OneIn
	m.fillKeys(rep, func(yield func(string, uint64) bool) {
		for _, c := range found.Clients {
			if !yield(c.Key, c.Requests) {
				return
			}
		}
	})
	span := rep.Last.Sub(rep.First)
	switch {
	case rep.Requests == 0:
		return
	case m.tooMany:
		rep.NoAnswer = "There are too many keys for a suggestion."
		return
	case rep.Requests < minRequests:
		rep.NoAnswer = fmt.Sprintf("The log has too few requests to suggest a limit: %d. It takes %d,"+
			" better those of some days.", rep.Requests, minRequests)
		return
	case span < minSpan:
		rep.NoAnswer = fmt.Sprintf("The log is too short to suggest a limit: %s. It takes an hour, better"+
			" some days, because a limit holds for clients that come back.", spanText(rep))
		return
	case m.paths != nil:
		rep.Limit = s.findByPath(m.o, found, m.paths.end(m.collector), span)
	default:
		rep.Limit = s.find(m.o, found, m.o.Suggest.fraction, span)
	}
	if rep.Limit == nil {
		rep.NoAnswer = s.whyNone(rep)
		return
	}
	m.fillClients(rep, found)
	s.TwiceTheBurst = uint64(len(found.Refused(rep.Limit.index, 2*rep.Limit.Burst)))
	if trial, ok := found.Try(rep.Limit.index, s.Share, m.o.leastBurst()); ok {
		s.Trial = &trial
		if n := float64(trial.Refused); n > 1 && n > 2*s.Share*float64(trial.Clients) {
			rep.Doubts = append(rep.Doubts, fmt.Sprintf("The halves of the log differ: what the first one"+
				" asks for refuses %s of the other one. Take a longer log.",
				ofAll(trial.Refused, trial.Clients, rep.keyWord(1), rep.keyWord(2))))
		}
	}
	if m.o.Picture {
		res.curve = newCurve(rep.Limit, s.Share, found)
	}
}

// whyNone says why a log that is long enough has no limit.
func (s *Suggestion) whyNone(rep *Report) string {
	l := leastLimit(s.Rates, rep.options.leastBurst(), s.found, math.MaxInt64)
	if l == nil {
		return "No burst is enough. Try higher rates, or a greater share in --suggest."
	}
	return fmt.Sprintf("The log is too short for the limit that it asks for: a burst of %s at %s takes"+
		" %s to refill, and the log of %s must be %d times as long.", grouped(l.Burst), l.Rate,
		durationText(l.refill()), spanText(rep), minIntervals)
}

// find finds the burst of each rate, and returns the limit for a share of the clients and the span
// of a log, if there is one.
func (s *Suggestion) find(
	o *Options, found *suggest.Result, share float64, span time.Duration,
) *Limit {
	s.Rates = burstsFor(o, found, share)
	return leastLimit(s.Rates, o.leastBurst(), found, span)
}

// burstsFor returns the least bursts for a share of the clients.
func burstsFor(o *Options, found *suggest.Result, share float64) (all []RateBurst) {
	for i, rate := range o.Rates {
		burst := found.ForClients(i, share)
		if burst == suggest.None {
			burst = 0
		}
		all = append(all, RateBurst{rate.String(), burst, rate})
	}
	return all
}

// leastBurst returns the least burst of a suggested limit, in tokens.
func (o *Options) leastBurst() uint64 {
	return uint64(math.Ceil(min(leastRequests*max(o.Cost.constant, 1), tb.MaxCapacity)))
}

// leastLimit returns the limit under which a client can take the least in a minute, with at least a
// burst, and what it refuses. A lower rate would need a far greater burst. It returns nil if no
// burst is enough, or if each takes too long to refill for a log of some span.
func leastLimit(
	all []RateBurst, leastBurst uint64, found *suggest.Result, span time.Duration,
) (least *Limit) {
	for i, b := range all {
		if b.Burst == 0 {
			continue
		}
		aSecond := uint64(math.Ceil(b.rate.perSecond())) // which a policy needs
		l := &Limit{Rate: b.Rate, Burst: max(b.Burst, leastBurst, aSecond), index: i, rate: b.rate}
		if l.refill() <= span/minIntervals && (least == nil || l.perMinute() < least.perMinute()) {
			least = l
		}
	}
	if least != nil {
		least.KeysRefused = uint64(len(found.Refused(least.index, least.Burst))) * found.OneIn
		_, requests := found.Refusals(least.index, []uint64{least.Burst})
		if least.Uncounted = requests == nil; requests != nil {
			least.Granted, least.Refused = found.Requests-requests[0], requests[0]
		}
	}
	return least
}

// refill returns how long an empty bucket takes to be full, at most 292 years.
func (l *Limit) refill() time.Duration {
	return time.Duration(min(float64(l.Burst)/l.rate.perSecond()*float64(time.Second), math.MaxInt64/2))
}

// perMinute returns the most tokens that a client can take in a minute.
func (l *Limit) perMinute() float64 { return float64(l.Burst) + 60*l.rate.perSecond() }

// fillClients fills in the clients that the suggested limit refuses most, and then the ones that
// send most.
func (m *suggestionMode) fillClients(rep *Report, found *suggest.Result) {
	l, refused := rep.Limit, make(map[*suggest.Client]uint64)
	for _, c := range found.Refused(l.index, l.Burst) {
		found.EachRefused(c, l.index, l.Burst, func(int64) { refused[c]++ })
	}
	kinds := newKinds(l.Burst, m.cost)
	for _, c := range found.Clients {
		kinds.add(&c.Visits, c.Kind, 1, found.Need(c, l.index) > l.Burst, refused[c])
	}
	rep.Kinds = kinds.all()
	above := func(c *suggest.Client) uint64 { return max(found.Need(c, l.index), l.Burst) }
	clients := slices.SortedFunc(slices.Values(found.Clients), func(a, b *suggest.Client) int {
		return cmp.Or(cmp.Compare(refused[b], refused[a]), cmp.Compare(above(b), above(a)),
			cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Key, b.Key))
	})
	for _, c := range clients[:min(len(clients), topKeys)] {
		rep.Top = append(rep.Top, TopKey{
			Key: compositekey.Parts(c.Key), Requests: c.Requests, Peak: c.Peak.Most,
			Refused: refused[c], Habit: m.habits.of(c.Key),
		})
	}
}
