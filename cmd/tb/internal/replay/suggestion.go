package replay

import (
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/suggest"
	"github.com/seed-181794aa/ratelimit/internal/compositekey"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Suggestion has the bursts that a log needs at each rate, and a limit for it. Bursts that would
// be above 1,073,741,824 are 0.
type Suggestion struct {
	// Clients is the number of keys that were looked at: all, or if OneIn is above 1, about one
	// in OneIn of them.
	Clients int    `json:"clients"`
	OneIn   uint64 `json:"one_in"`
	// Share is the flag --suggest: the most clients that the limit may ever refuse.
	Share float64 `json:"share"`
	// Rates has the bursts of each rate, in the order of the rates.
	Rates []RateBursts `json:"rates"`
	// Paths has the limits of the paths with the most requests, if --by-path asks for them.
	Paths []PathLimit `json:"paths"`
	// Limit is the suggested limit. It is left out if no burst is enough, and if there are no clients.
	Limit *SuggestedLimit `json:"limit,omitempty"`

	// Check has what the limit does to the logs of --check. It is left out if there are none.
	Check *Check `json:"check,omitempty"`
	// Export is the text that --export or --by-path asks for.
	Export string `json:"export,omitempty"`

	share       Share
	found       *suggest.Result
	export      string // the name of what is exported
	exportFile  string
	noExport    string // why there is none
	replayFlags string
	proxyFlags  string
	curve       *refusalCurve // nil without Options.Picture
}

// RateBursts has the bursts of one rate.
type RateBursts struct {
	// Rate is always with its unit: "5/s", "300/m".
	Rate string `json:"rate"`
	// Clients has the least bursts with which at most a share of the clients is ever refused.
	Clients []ShareBurst `json:"clients"`
	// Requests has bursts with which at most a share of the requests is refused. Up to 1,024 tokens, a
	// burst is the least one or more by at most the cost of a request, and beyond by 0.2 % more.
	// It is empty if the cost is not a whole number of tokens, the same for all requests.
	Requests []ShareBurst `json:"requests"`

	rate Rate
}

// ShareBurst is the burst for a share.
type ShareBurst struct {
	Share float64 `json:"share"`
	Burst uint64  `json:"burst"`
}

// SuggestedLimit is the limit at the knee of the curve of the least bursts with which at most the
// share of the clients is ever refused.
type SuggestedLimit struct {
	Rate  string `json:"rate"`
	Burst uint64 `json:"burst"`
	// PerMinute is the most tokens that a client can take in a minute.
	PerMinute float64 `json:"per_minute"`
	// AtEnd reports that the rate is the lowest or the highest of several.
	AtEnd bool `json:"at_end"`
	// Refused is how many clients are ever refused. Top has the ten that need the greatest
	// bursts.
	Refused int             `json:"refused"`
	Top     []RefusedClient `json:"top"`
	// Policy is the limit as a policy, which tb proxy takes as it is. It is left out if a policy
	// cannot have the limit, for the reason in NoPolicy.
	Policy   *SuggestedPolicy `json:"policy,omitempty"`
	NoPolicy string           `json:"no_policy,omitempty"`
	// NoAddress is how many clients are not addresses, such as host names, if the address is in the
	// key. A replay of the policy has one bucket for all of them.
	NoAddress int `json:"no_address"`

	index   int // of its rate
	rate    Rate
	raised  bool            // the burst is more than the log needs, because a policy needs it
	clients []RefusedClient // Top and more, for the page
}

// RefusedClient is a client that a suggested limit refuses at least once.
type RefusedClient struct {
	Key      Key    `json:"key"`
	Requests uint64 `json:"requests"`
	// Peak is as in TopKey.
	Peak  uint32    `json:"peak_per_second"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	// Need is the least burst with which the client would never be refused.
	Need uint64 `json:"need"`
}

// newCollector returns the collector of a suggestion.
func newCollector(o *Options) *suggest.Collector {
	var limits []tb.Limit
	for _, r := range o.Rates {
		limits = append(limits, r.limit(1))
	}
	c := suggest.New(limits, o.Cost.costs(), o.MaxKeys)
	if o.Picture || o.ByPath || o.Export != "" {
		c.KeepTimes()
	}
	return c
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
	return suggest.Costs{Whole: c.unit == 1}
}

// suggestion returns the suggestion for the requests so far, in logs with a schema.
func (r *replayer) suggestion(o *Options, schema accesslog.Schema) *Suggestion {
	s := newSuggestion(o, r.found)
	s.replayFlags, s.proxyFlags = suggestedFlags(o, schema)
	if s.Limit != nil {
		s.Limit.addPolicy(o)
		s.Limit.NoAddress = countNoAddress(r.found.Clients, slices.Index(o.Keys, "ip"))
	}
	if o.Picture {
		s.curve = s.newCurve(r.found)
	}
	if r.paths != nil && s.Limit != nil {
		s.addPaths(o, r.paths.end())
	}
	if s.export = o.Export; o.ByPath && s.export == "" {
		s.export = "policy"
	}
	switch {
	case s.export == "" || s.Limit == nil:
	case s.export == "policy" && s.Limit.Policy == nil:
		s.noExport = s.Limit.NoPolicy
	case s.export != "policy" && (!slices.Equal(o.Keys, []string{"ip"}) || o.Cost.constant != 1):
		s.noExport = "it needs --key ip and --cost 1"
	default:
		s.Export, s.exportFile = exported(s.export, s.plan())
	}
	return s
}

// newSuggestion returns the suggestion for clients, with its limit.
func newSuggestion(o *Options, found *suggest.Result) *Suggestion {
	s := &Suggestion{
		Clients: len(found.Clients), OneIn: found.OneIn, Share: o.Suggest.fraction,
		Rates: []RateBursts{}, Paths: []PathLimit{}, share: o.Suggest, found: found,
	}
	shares := fractions(o.Suggest.columns())
	for i, rate := range o.Rates {
		b := RateBursts{
			Rate: rate.String(), rate: rate, Requests: []ShareBurst{},
			Clients: shareBursts(shares, found.ForClients(i, shares)),
		}
		if bursts := found.ForRequests(i, shares); bursts != nil {
			b.Requests = shareBursts(shares, bursts)
		}
		s.Rates = append(s.Rates, b)
	}
	if s.Limit = s.choose(); s.Limit != nil {
		s.Limit.addRefused(found)
	}
	return s
}

// shareBursts pairs shares with their bursts.
func shareBursts(shares []float64, bursts []uint64) (all []ShareBurst) {
	for i, share := range shares {
		b := ShareBurst{Share: share, Burst: bursts[i]}
		if b.Burst == suggest.None {
			b.Burst = 0
		}
		all = append(all, b)
	}
	return all
}

// choose returns the limit at the knee, nil if no burst is enough or there is no request.
//
// The knee is the point of the curve of bursts over rates that is farthest below the line between
// its ends, with both axes logarithmic and scaled to 1 (V. Satopää, J. Albrecht, D. Irwin,
// B. Raghavan, "Finding a Kneedle in a Haystack", 2011). A lower rate would need a much greater
// burst, and a higher one allows hardly a smaller one.
func (s *Suggestion) choose() *SuggestedLimit {
	var rates, bursts axis
	for _, b := range s.Rates {
		if burst := burstFor(b.Clients, s.Share); burst > 0 {
			rates.include(b.rate.approximate())
			bursts.include(float64(burst))
		}
	}
	var knee *SuggestedLimit
	farthest := math.Inf(-1)
	for i, b := range s.Rates {
		perSecond, burst := b.rate.approximate(), burstFor(b.Clients, s.Share)
		below := 1 - rates.scale(perSecond) - bursts.scale(float64(burst))
		if s.Clients == 0 || burst == 0 || below <= farthest {
			continue
		}
		farthest = below
		least := burst
		burst = max(burst, uint64(math.Ceil(perSecond))) // which a policy needs
		knee = &SuggestedLimit{
			Rate: b.Rate, Burst: burst, PerMinute: float64(burst) + 60*perSecond,
			AtEnd: rates.low < rates.high && (perSecond == rates.low || perSecond == rates.high),
			index: i, rate: b.rate, raised: burst > least,
		}
	}
	return knee
}

// axis is the range of positive numbers on a logarithmic axis.
type axis struct{ low, high float64 }

func (a *axis) include(v float64) {
	if a.low == 0 {
		a.low, a.high = v, v
	}
	a.low, a.high = min(a.low, v), max(a.high, v)
}

// scale returns where a number is on the axis, from 0 to 1.
func (a *axis) scale(v float64) float64 {
	if a.low == a.high {
		return 0
	}
	return math.Log(v/a.low) / math.Log(a.high/a.low)
}

// burstFor returns the burst for a share.
func burstFor(bursts []ShareBurst, share float64) uint64 {
	for _, b := range bursts {
		if b.Share == share {
			return b.Burst
		}
	}
	return 0
}

// countNoAddress returns how many clients have a part that is not an address. The part is an index
// in their keys, -1 for none.
func countNoAddress(clients []*suggest.Client, part int) (n int) {
	if part < 0 {
		return 0
	}
	for _, c := range clients {
		address, _, _ := strings.Cut(compositekey.Parts(c.Key)[part], "/")
		if _, err := netip.ParseAddr(address); err != nil {
			n++
		}
	}
	return n
}

// addRefused adds the clients that are refused.
func (l *SuggestedLimit) addRefused(found *suggest.Result) {
	refused := found.Refused(l.index, l.Burst)
	l.Refused, l.clients = len(refused), []RefusedClient{}
	for _, c := range refused[:min(len(refused), pageKeys)] {
		need := found.Need(c, l.index)
		if need == suggest.None {
			need = 0
		}
		l.clients = append(l.clients, RefusedClient{
			Key: compositekey.Parts(c.Key), Requests: c.Requests, Peak: c.Peak.Most,
			First: time.Unix(0, c.First).UTC(), Last: time.Unix(0, c.Last).UTC(), Need: need,
		})
	}
	l.Top = l.clients[:min(len(l.clients), shownKeys)]
}
