package replay

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/cmd/internal/suggest"
	"github.com/seed-181794aa/ratelimit/internal/compositekey"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Suggestion has the bursts that a log needs at each rate, and a limit for it. Bursts that would
// be above 1,073,741,824 are 0.
type Suggestion struct {
	// Share is the flag --suggest: the most clients that the limit may ever refuse.
	Share float64 `json:"share"`
	// Rates has the bursts of each rate, in the order of the rates.
	Rates []RateBursts `json:"rates"`
	// Paths has the limits of the paths with the most requests, if --by-path asks for them.
	Paths []PathLimit `json:"paths"`
	// Together is how many clients the limits of the policy ever refuse, at most the share that
	// --suggest asks for. It is an estimate from one client in TogetherOneIn. Both are left out
	// without --by-path.
	Together      uint64 `json:"together,omitempty"`
	TogetherOneIn uint64 `json:"together_one_in,omitempty"`
	// Limit is the suggested limit. It is left out if no burst is enough, and if there are no clients
	// or more than --max-keys.
	Limit *SuggestedLimit `json:"limit,omitempty"`
	// Export is the text that --export or --by-path asks for. It is left out if there is none, for the
	// reason in NoExport.
	Export   string `json:"export,omitempty"`
	NoExport string `json:"no_export,omitempty"`

	share      Share
	ask        string // the flags that ask for this suggestion
	export     string // the name of what is exported
	exportFile string
}

// RateBursts has the bursts of one rate.
type RateBursts struct {
	// Rate is always with its unit: "5/s", "300/m".
	Rate string `json:"rate"`
	// Clients has the least bursts with which at most a share of the clients is ever refused.
	Clients []ShareBurst `json:"clients"`

	rate Rate
}

// ShareBurst is the burst for a share.
type ShareBurst struct {
	Share float64 `json:"share"`
	Burst uint64  `json:"burst"`
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
	costs := o.Cost.costs()
	if !times {
		costs.Fixed = 0
	}
	return suggest.New(limits, costs, maxKeys)
}

// costs describes the costs of requests for a suggestion.
func (c *Cost) costs() suggest.Costs {
	whole := c.constant == math.Trunc(c.constant)
	switch {
	case c.constant > tb.MaxCapacity:
		return suggest.Costs{Whole: true}
	case c.constant > 0 && whole:
		return suggest.Costs{Fixed: uint64(c.constant), Whole: true}
	}
	return suggest.Costs{Whole: c.constant == 0 && c.field == ""}
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
	key := text
	if m.paths != nil {
		var group []byte
		key, group = unpackGroup(text)
		m.paths.add(key, group, p.time, p.cost)
	}
	m.collector.Add(key, p.time, p.cost)
	if m.tooMany = m.collector.OneIn() > 1; m.tooMany {
		return false, fmt.Errorf("the log has more than %s keys, and a suggestion looks at all of them:"+
			" want a greater --max-keys", grouped(m.o.MaxKeys))
	}
	return true, nil
}

func (m *suggestionMode) fill(res *Result) {
	rep := &res.Report
	s := &Suggestion{
		Share: m.o.Suggest.fraction, Rates: []RateBursts{}, Paths: []PathLimit{}, share: m.o.Suggest,
		ask: m.o.ask(),
	}
	rep.Suggestion, rep.KeysExact = s, !m.tooMany
	found := m.collector.Result()
	rep.Keys = uint64(len(found.Clients)) * found.OneIn
	m.fillKeys(rep, func(yield func(string, uint64) bool) {
		for _, c := range found.Clients {
			if !yield(c.Key, c.Requests) {
				return
			}
		}
	})
	if m.tooMany {
		return
	}
	if m.paths != nil {
		s.findByPath(m.o, found, m.paths.end())
	} else {
		s.find(m.o, found, m.o.Suggest)
	}
	if s.Limit != nil {
		s.Limit.addPolicy(m.o)
		m.fillClients(res, found)
		s.addExport(m.o, rep.Keys)
	}
	if m.o.Picture {
		res.curve = s.newCurve(m.o, found, rep)
	}
}

// find finds the bursts of each rate, and the limit for a share of the clients.
func (s *Suggestion) find(o *Options, found *suggest.Result, share Share) {
	s.Rates = rateBursts(o.Rates, found, share.columns())
	if len(found.Clients) == 0 {
		return
	}
	if s.Limit = knee(s.Rates, share, 1); s.Limit != nil {
		s.Limit.count(found)
	}
}

// rateBursts returns the bursts for shares of the clients at each rate.
func rateBursts(rates []Rate, found *suggest.Result, shares []Share) (all []RateBursts) {
	fractions := make([]float64, len(shares))
	for i, s := range shares {
		fractions[i] = s.fraction
	}
	for i, rate := range rates {
		b := RateBursts{Rate: rate.String(), rate: rate}
		for j, burst := range found.ForClients(i, fractions) {
			b.Clients = append(b.Clients, ShareBurst{fractions[j], orZero(burst)})
		}
		all = append(all, b)
	}
	return all
}

// orZero returns a burst, and 0 if none is enough.
func orZero(burst uint64) uint64 {
	if burst == suggest.None {
		return 0
	}
	return burst
}

// fillClients fills in the clients that the suggested limit refuses, the clients that send most,
// and what the limit leaves of the busiest second.
func (m *suggestionMode) fillClients(res *Result, found *suggest.Result) {
	rep, l := &res.Report, res.Report.Suggestion.Limit
	if n, known := found.RefusedIn(rep.Busiest.Second.Unix(), l.index, l.Burst); known {
		*rep.Busiest.Left = max(0, *rep.Busiest.Left-n)
	} else {
		rep.Busiest.Left = nil
	}
	// For the page, also clients that smaller bursts refuse.
	shares := []float64{min(1, pageKeys/float64(len(found.Clients)))}
	clients := found.Refused(l.index, min(l.Burst, found.ForClients(l.index, shares)[0]))
	for _, c := range clients[:min(len(clients), pageKeys)] {
		res.keys = append(res.keys, m.topKey(found, c, l))
	}
	rep.Top = append(rep.Top, res.keys[:min(len(res.keys), int(l.Refused), shownKeys)]...)
	senders := slices.SortedFunc(slices.Values(found.Clients), func(a, b *suggest.Client) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Key, b.Key))
	})
	for _, c := range senders[:min(len(senders), shownSenders)] {
		rep.Senders = append(rep.Senders, m.topKey(found, c, l))
	}
}

// topKey returns the statistics of a client under a suggested limit.
func (m *suggestionMode) topKey(
	found *suggest.Result, c *suggest.Client, l *SuggestedLimit,
) TopKey {
	k := TopKey{
		Key: compositekey.Parts(c.Key), Requests: c.Requests, Peak: c.Peak.Most,
		Refused: found.RefusedOf(c, l.index, l.Burst), Habit: m.habits.of(c.Key),
	}
	for rate := range found.Rates() {
		k.needs = append(k.needs, orZero(found.Need(c, rate)))
	}
	k.RefusedMost, k.Need = k.Refused, k.needs[l.index]
	return k
}
