package replay

import (
	"math"

	"github.com/seed-181794aa/ratelimit/cmd/internal/suggest"
	"github.com/seed-181794aa/ratelimit/httplimit"
)

// SuggestedLimit is a limit that refuses at most a share of the clients, at the knee of the curve
// of bursts over rates.
type SuggestedLimit struct {
	Rate  string `json:"rate"`
	Burst uint64 `json:"burst"`
	// AtEnd reports that the rate is the lowest or the highest of several.
	AtEnd bool `json:"at_end"`
	// Refused is how many clients are ever refused. RequestsRefused is how many requests are. It is
	// left out if costs vary or are not whole, and if there are more than 4,194,304 requests.
	Refused         uint64  `json:"refused"`
	RequestsRefused *uint64 `json:"requests_refused,omitempty"`
	// Policy is the limit as a policy, which tb proxy takes as it is. It is left out if a policy
	// cannot have the limit, for the reason in NoPolicy.
	Policy   *httplimit.Policy `json:"policy,omitempty"`
	NoPolicy string            `json:"no_policy,omitempty"`

	index  int // of its rate
	rate   Rate
	raised bool // the burst is more than the log needs, because a policy needs it
}

// knee returns the limit at the knee for a share of the clients, with at least a burst. It returns
// nil if no burst is enough.
//
// The knee is the point of the curve of bursts over rates that is farthest below the line between
// its ends, with both axes logarithmic and scaled to 1 (V. Satopää, J. Albrecht, D. Irwin,
// B. Raghavan, "Finding a Kneedle in a Haystack", 2011). A lower rate would need a much greater
// burst, and a higher one allows hardly a smaller one.
func knee(all []RateBursts, share Share, leastBurst uint64) (limit *SuggestedLimit) {
	var rates, bursts axis
	for _, b := range all {
		if burst := b.burstFor(share); burst > 0 {
			rates.include(b.rate.approximate())
			bursts.include(float64(burst))
		}
	}
	farthest := math.Inf(-1)
	for i, b := range all {
		perSecond, needed := b.rate.approximate(), b.burstFor(share)
		below := 1 - rates.scale(perSecond) - bursts.scale(float64(needed))
		if needed == 0 || below <= farthest {
			continue
		}
		farthest = below
		burst := max(needed, leastBurst, uint64(math.Ceil(perSecond))) // which a policy needs
		limit = &SuggestedLimit{
			Rate: b.Rate, Burst: burst,
			AtEnd: rates.low < rates.high && (perSecond == rates.low || perSecond == rates.high),
			index: i, rate: b.rate, raised: burst > needed,
		}
	}
	return limit
}

// burstFor returns the burst for a share.
func (b *RateBursts) burstFor(share Share) uint64 {
	for _, c := range b.Clients {
		if c.Share == share.fraction {
			return c.Burst
		}
	}
	return 0
}

// count counts the clients and the requests that the limit refuses.
func (l *SuggestedLimit) count(found *suggest.Result) {
	clients, requests := found.Refusals(l.index, []uint64{l.Burst})
	if l.Refused = clients[0]; requests != nil {
		l.RequestsRefused = &requests[0]
	}
}

// perMinute returns the most tokens that a client can take in a minute.
func (l *SuggestedLimit) perMinute() float64 { return float64(l.Burst) + 60*l.rate.approximate() }

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
