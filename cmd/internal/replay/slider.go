package replay

import (
	"math"
	"slices"

	"github.com/seed-181794aa/ratelimit/cmd/internal/suggest"
	"github.com/seed-181794aa/ratelimit/httplimit"
)

// refusalCurve has the refusals of many bursts at each rate, as the page reads them.
type refusalCurve struct {
	// Clients and Requests are the numbers of all clients and requests.
	Clients  int    `json:"clients"`
	Requests uint64 `json:"requests"`
	// Bursts ascend from 1.
	Bursts []uint64       `json:"bursts"`
	Rates  []rateRefusals `json:"rates"`
	// Share is the flag --suggest. Rate and Burst are the indexes of the suggested limit, if there is
	// one.
	Share     float64 `json:"share"`
	Suggested bool    `json:"suggested"`
	Rate      int     `json:"rate"`
	Burst     int     `json:"burst"`
	// ReplayFlags and ProxyFlags are the flags besides the limit.
	ReplayFlags string `json:"replay_flags"`
	ProxyFlags  string `json:"proxy_flags"`
}

// rateRefusals has the refusals of each burst at one rate.
type rateRefusals struct {
	Rate string `json:"rate"`
	// Clients has the number of clients that are refused at least once.
	Clients []uint64 `json:"clients"`
	// Requests has the number of requests that are refused. It is null if costs vary or are not whole,
	// and if there are too many requests to count the refused ones.
	Requests []uint64 `json:"requests"`
	// Policy is a policy of the rate, with any burst. It is null if a policy cannot have the rate.
	Policy *httplimit.Policy `json:"policy"`
}

// newCurve returns the refusals at the rates of a suggestion, up to the greatest burst of its
// table.
func (s *Suggestion) newCurve(o *Options, found *suggest.Result, rep *Report) *refusalCurve {
	c := &refusalCurve{
		Clients: len(found.Clients), Requests: found.Requests,
		Share: s.Share, ReplayFlags: rep.replayFlags, ProxyFlags: rep.proxyFlags,
	}
	greatest := uint64(1)
	for i := range s.Rates {
		for _, b := range s.Rates[i].Clients {
			greatest = max(greatest, b.Burst)
		}
	}
	c.Bursts = burstsTo(greatest)
	if s.Limit != nil {
		i, found := slices.BinarySearch(c.Bursts, s.Limit.Burst)
		if !found {
			c.Bursts = slices.Insert(c.Bursts, i, s.Limit.Burst)
		}
		c.Suggested, c.Rate, c.Burst = true, s.Limit.index, i
	}
	for i, r := range s.Rates {
		clients, requests := found.Refusals(i, c.Bursts)
		l := SuggestedLimit{rate: r.rate, Burst: uint64(math.Ceil(max(1, r.rate.approximate())))}
		l.addPolicy(o)
		c.Rates = append(c.Rates, rateRefusals{r.Rate, clients, requests, l.Policy})
	}
	return c
}

// burstsTo returns bursts from 1 to greatest, each at most a tenth or 1 above the one before: about
// 200 up to the greatest burst of all.
func burstsTo(greatest uint64) (bursts []uint64) {
	for b := uint64(1); b < greatest; b += max(1, b/10) {
		bursts = append(bursts, b)
	}
	return append(bursts, greatest)
}
