package replay

import (
	"fmt"
	"math"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/cmd/internal/suggest"
	"github.com/seed-181794aa/ratelimit/tb"
)

const (
	// minRequests is how many requests a suggestion needs: fewer say nothing about a client.
	minRequests = 100
	// leastBurst is the least burst of a suggested limit: a person clicks twice.
	leastBurst = 5
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
	// that --suggest asks for. It is 0 without --by-path.
	Together uint64 `json:"together"`

	found *suggest.Result // of all requests
}

// RateBurst has the least burst with which at most the share of each kind of clients that matters
// is ever refused at a rate, 0 if that is above 1,073,741,824.
type RateBurst struct {
	Rate  Rate   `json:"rate"`
	Burst uint64 `json:"burst"`
}

type suggestionMode struct {
	*keyer
	collector *suggest.Collector
	paths     *pathGroups // nil without Options.ByPath
}

func newSuggestionMode(o *Options) (*suggestionMode, error) {
	k, err := newKeyer(o)
	if err != nil {
		return nil, err
	}
	var rates []tb.Limit
	for _, r := range o.Rates {
		rates = append(rates, r.limit(1))
	}
	m := &suggestionMode{keyer: k, collector: suggest.New(rates, true)}
	if o.ByPath {
		m.paths = &pathGroups{rates: rates, byPath: make(map[string]*PathLimit)}
	}
	return m, nil
}

func (m *suggestionMode) pack(rec *accesslog.Record, f accesslog.Format) pending {
	p := m.keyer.pack(rec, f)
	if m.paths != nil {
		p.group = m.paths.of(rec.Path)
	}
	return p
}

func (m *suggestionMode) decide(p pending) (granted bool, err error) {
	if err := m.clients.check("a suggestion"); err != nil {
		return false, err
	}
	if m.paths != nil {
		m.paths.add(p)
	}
	m.collector.Add(p.client.number, p.time)
	return true, nil
}

func (m *suggestionMode) fill(rep *Report) {
	kinds := m.clients.kinds()
	found := m.collector.Result(kinds)
	s := &Suggestion{
		Share: float64(*rep.options.Suggest) / 100, Rates: []RateBurst{}, Paths: []PathLimit{},
		found: found,
	}
	rep.Suggestion = s
	m.fillKeys(rep)
	span := rep.Last.Sub(rep.First)
	switch {
	case rep.Requests == 0:
		return
	case m.clients.more:
		rep.NoAnswer = "There are too many keys for a suggestion."
		return
	case rep.Requests < minRequests:
		rep.NoAnswer = fmt.Sprintf("The log has too few requests to suggest a limit: %d. It takes %d,"+
			" better those of some days.", rep.Requests, minRequests)
		return
	case span < minSpan:
		rep.NoAnswer = fmt.Sprintf("The log is too short to suggest a limit: %s. It takes an hour,"+
			" better some days, because a limit holds for clients that come back.", spanText(rep))
		return
	case m.paths != nil:
		rep.Limit = s.findByPath(rep.options, len(kinds), m.paths.end(kinds), span)
	default:
		s.Rates = burstsFor(rep.options, found, s.Share)
		rep.Limit = leastLimit(s.Rates, span)
	}
	l := rep.Limit
	if l == nil {
		rep.NoAnswer = s.whyNone(rep)
		return
	}
	l.Uncounted = !found.Timed()
	for _, c := range m.clients.byKey {
		need := found.Need(c.number, l.index)
		if need > 2*l.Burst {
			s.TwiceTheBurst++
		}
		if l.Uncounted {
			c.refused = need - min(need, l.Burst)
			continue
		}
		c.refused = found.Refused(c.number, l.index, l.Burst)
		l.Refused += c.refused
	}
	if !l.Uncounted {
		l.Granted = rep.Requests - l.Refused
	}
	m.clients.fill(rep)
	if trial, ok := found.Try(l.index, s.Share, leastBurst); ok {
		s.Trial = &trial
		if n := float64(trial.Refused); n > 1 && n > 2*s.Share*float64(trial.Clients) {
			rep.Doubts = append(rep.Doubts, fmt.Sprintf("The halves of the log differ: what the first one"+
				" asks for refuses %s of the other one. Take a longer log.",
				ofAll(trial.Refused, trial.Clients, rep.thing())))
		}
	}
}

func (s *Suggestion) whyNone(rep *Report) string {
	l := leastLimit(s.Rates, math.MaxInt64)
	if l == nil {
		return "No burst is enough. Try higher rates, or a greater share in --suggest."
	}
	return fmt.Sprintf("The log is too short for the limit that it asks for: a burst of %s at %s"+
		" takes %s to refill, and the log of %s must be %d times as long.", grouped(l.Burst), l.Rate,
		durationText(l.refill()), spanText(rep), minIntervals)
}

func burstsFor(o *Options, found *suggest.Result, share float64) (all []RateBurst) {
	for i, rate := range o.Rates {
		burst := found.ForClients(i, share)
		if burst == suggest.None {
			burst = 0
		}
		all = append(all, RateBurst{rate, burst})
	}
	return all
}

// leastLimit returns the limit under which a client can take the least in a minute. A lower rate
// would need a far greater burst. It returns nil if no burst is enough, or if each takes too long
// to refill for a log of some span.
func leastLimit(all []RateBurst, span time.Duration) (least *Limit) {
	for i, b := range all {
		if b.Burst == 0 {
			continue
		}
		aSecond := uint64(math.Ceil(b.Rate.perSecond())) // which a policy needs
		l := &Limit{Rate: b.Rate, Burst: max(b.Burst, leastBurst, aSecond), index: i}
		if l.refill() <= span/minIntervals && (least == nil || l.perMinute() < least.perMinute()) {
			least = l
		}
	}
	return least
}

// refill returns how long an empty bucket takes to be full, at most 292 years.
func (l *Limit) refill() time.Duration {
	seconds := float64(l.Burst) / l.Rate.perSecond()
	return time.Duration(min(seconds*float64(time.Second), math.MaxInt64/2))
}

func (l *Limit) perMinute() float64 { return float64(l.Burst) + 60*l.Rate.perSecond() }
