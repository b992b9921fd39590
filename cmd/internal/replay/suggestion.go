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
)

// Suggestion has the burst that a log needs at each rate, and a limit for it.
type Suggestion struct {
	// Share is the flag --suggest: the most clients that the limit may ever refuse.
	Share float64 `json:"share"`
	// Rates has the bursts, in the order of the rates.
	Rates []RateBurst `json:"rates"`
	// Paths has the limits of the paths with the most requests, if --by-path asks for them.
	Paths []PathLimit `json:"paths"`
	// Together is how many clients the limits of the policy ever refuse, at most the share that
	// --suggest asks for. It is an estimate from one client in TogetherOneIn. Both are left out
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
		m.paths.add(key, group, p.time, cost)
	}
	m.collector.Add(key, p.time, cost)
	if m.tooMany = m.collector.OneIn() > 1; m.tooMany {
		return false, fmt.Errorf("the log has more than %s keys, and a suggestion looks at all of them:"+
			" want a greater --max-keys", grouped(m.o.MaxKeys))
	}
	return true, nil
}

func (m *suggestionMode) fill(res *Result) {
	rep := &res.Report
	found := m.collector.Result()
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
	switch {
	case m.tooMany || rep.Requests < minRequests:
		return
	case m.paths != nil:
		rep.Limit = s.findByPath(m.o, found, m.paths.end())
	default:
		rep.Limit = s.find(m.o, found, m.o.Suggest.fraction)
	}
	if rep.Limit == nil {
		return
	}
	rep.Limit.addPolicy(m.o)
	m.fillClients(rep, found)
	if m.o.Picture {
		res.curve = newCurve(rep.Limit, s.Share, found)
	}
}

// find finds the burst of each rate, and returns the limit for a share of the clients, if there is
// one.
func (s *Suggestion) find(o *Options, found *suggest.Result, share float64) *Limit {
	s.Rates = burstsFor(o, found, share)
	return leastLimit(s.Rates, o.leastBurst(), found)
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
// burst is enough.
func leastLimit(all []RateBurst, leastBurst uint64, found *suggest.Result) (least *Limit) {
	for i, b := range all {
		if b.Burst == 0 {
			continue
		}
		aSecond := uint64(math.Ceil(b.rate.perSecond())) // which a policy needs
		l := &Limit{Rate: b.Rate, Burst: max(b.Burst, leastBurst, aSecond), index: i, rate: b.rate}
		if least == nil || l.perMinute() < least.perMinute() {
			least = l
		}
	}
	if least != nil {
		clients, requests := found.Refusals(least.index, []uint64{least.Burst})
		least.KeysRefused, least.Uncounted = clients[0], requests == nil
		if requests != nil {
			least.Granted, least.Refused = found.Requests-requests[0], requests[0]
		}
	}
	return least
}

// perMinute returns the most tokens that a client can take in a minute.
func (l *Limit) perMinute() float64 { return float64(l.Burst) + 60*l.rate.perSecond() }

// fillClients fills in the clients that the suggested limit refuses most, and then the ones that
// send most, and what the limit leaves of the busiest second.
func (m *suggestionMode) fillClients(rep *Report, found *suggest.Result) {
	l := rep.Limit
	refused, second := make(map[*suggest.Client]uint64), rep.Busiest.Second.Unix()
	for _, c := range found.Refused(l.index, l.Burst) {
		found.EachRefused(c, l.index, l.Burst, func(t int64) {
			if refused[c]++; t/int64(time.Second) == second && *rep.Busiest.Left > 0 {
				*rep.Busiest.Left--
			}
		})
	}
	if l.Uncounted {
		rep.Busiest.Left = nil
	}
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
