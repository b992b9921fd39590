package replay

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/suggest"
	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/internal/compositekey"
)

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
	Policy   *httplimit.Policy `json:"policy,omitempty"`
	NoPolicy string            `json:"no_policy,omitempty"`
	// NoAddress is how many clients are not addresses, such as host names, if the address is in the
	// key. A replay of the policy has one bucket for all of them.
	NoAddress int `json:"no_address"`

	index   int // of its rate
	rate    Rate
	raised  bool            // the burst is more than the log needs, because a policy needs it
	clients []RefusedClient // of the page: the most refused ones, and ones that lower bursts refuse
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

	Habit

	needs []uint64 // at each rate
}

// choose returns the limit at the knee for a share of the clients, nil if no burst is enough or
// there is no request.
//
// The knee is the point of the curve of bursts over rates that is farthest below the line between
// its ends, with both axes logarithmic and scaled to 1 (V. Satopää, J. Albrecht, D. Irwin,
// B. Raghavan, "Finding a Kneedle in a Haystack", 2011). A lower rate would need a much greater
// burst, and a higher one allows hardly a smaller one.
func (s *Suggestion) choose(share float64) *SuggestedLimit {
	var rates, bursts axis
	for _, b := range s.Rates {
		if burst := burstFor(b.Clients, share); burst > 0 {
			rates.include(b.rate.approximate())
			bursts.include(float64(burst))
		}
	}
	var knee *SuggestedLimit
	farthest := math.Inf(-1)
	for i, b := range s.Rates {
		perSecond, burst := b.rate.approximate(), burstFor(b.Clients, share)
		below := 1 - rates.scale(perSecond) - bursts.scale(float64(burst))
		if s.Clients == 0 || burst == 0 || below <= farthest {
			continue
		}
		farthest = below
		least := burst
		burst = max(burst, s.least, uint64(math.Ceil(perSecond))) // which a policy needs
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

// addRefused adds the clients that are refused, and some that lower bursts refuse, for the page.
func (l *SuggestedLimit) addRefused(found *suggest.Result, h *habits) {
	shares := []float64{min(1, pageKeys/float64(len(found.Clients)))}
	clients := found.Refused(l.index, min(l.Burst, found.ForClients(l.index, shares)[0]))
	for _, c := range clients {
		if found.Need(c, l.index) > l.Burst {
			l.Refused++
		}
	}
	l.clients = []RefusedClient{}
	for _, c := range clients[:min(len(clients), pageKeys)] {
		r := RefusedClient{
			Key: compositekey.Parts(c.Key), Requests: c.Requests, Peak: c.Peak.Most,
			First: time.Unix(0, c.First).UTC(), Last: time.Unix(0, c.Last).UTC(),
			Habit: h.of(c.Key),
		}
		for rate := range found.Rates() {
			r.needs = append(r.needs, orZero(found.Need(c, rate)))
		}
		r.Need = r.needs[l.index]
		l.clients = append(l.clients, r)
	}
	l.Top = l.clients[:min(l.Refused, shownKeys)]
}

// write writes the limit: the flags and the policy that set it, and the clients that it refuses.
func (l *SuggestedLimit) write(b *strings.Builder, s *Suggestion) {
	fmt.Fprintf(b, "\n%s\n", l.headline(s))
	fmt.Fprintf(b, "A client can take at most %.6g tokens in a minute.\n", l.PerMinute)
	if l.raised {
		b.WriteString("The log needs less, but a policy needs a burst of at least a second of its" +
			" rate.\n")
	}
	if l.AtEnd {
		b.WriteString("The rate is the lowest or the highest that was tried: others may be better.\n")
	}
	fmt.Fprintf(b, "\n  tb replay --rate %s --burst %d%s FILE\n", l.Rate, l.Burst, s.replayFlags)
	proxy := "  tb proxy --policy policy.json" + s.proxyFlags + "\n"
	switch {
	case s.export == "policy" && l.Policy != nil:
		b.WriteString(proxy)
	case s.export != "":
	case l.Policy == nil:
		fmt.Fprintf(b, "\nThere is no policy for tb proxy: %s.\n", l.NoPolicy)
	default:
		fmt.Fprintf(b, "%s\npolicy.json:\n\n%s\n", proxy, policyText(l.Policy))
		b.WriteString(ifAny(l.NoAddress, "\n%s "+
			plural(l.NoAddress, "client is not an address", "clients are not addresses")+
			": a replay of the policy has one bucket for all of them.\n"))
	}
	l.writeRefused(b)
}

// headline returns the limit and its refusals.
func (l *SuggestedLimit) headline(s *Suggestion) string {
	why := ", the knee"
	if len(s.Rates) == 1 {
		why = ""
	}
	return fmt.Sprintf("Suggested: %s, burst %s%s at %s. It refuses %s of %s %s (%s).", l.Rate,
		grouped(l.Burst), why, s.share, grouped(l.Refused), grouped(s.Clients),
		plural(s.Clients, "client", "clients"), percent(share(uint64(l.Refused), uint64(s.Clients))))
}

// writeRefused writes the clients that are refused.
func (l *SuggestedLimit) writeRefused(b *strings.Builder) {
	if l.Refused == 0 {
		return
	}
	b.WriteString("\nRefused, with the burst that each would need:\n\n")
	table := columns(b)
	fmt.Fprintln(table, "needs\trequests\tpeak/s\tfirst\tlast\t  key")
	for _, c := range l.Top {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t  %s\n", burstText(c.Need), grouped(c.Requests),
			grouped(c.Peak), dateTime(c.First), dateTime(c.Last),
			clientText(c.Key, c.Habit))
	}
	table.Flush()
}
