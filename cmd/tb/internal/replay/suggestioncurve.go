package replay

import (
	"slices"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/suggest"
)

// refusalCurve has the refusals of many bursts at each rate, as the page reads them.
type refusalCurve struct {
	// Clients and Requests are the numbers of all clients and requests, or if OneIn is above 1, of
	// about one in OneIn.
	Clients  int    `json:"clients"`
	Requests uint64 `json:"requests"`
	OneIn    uint64 `json:"one_in"`
	// Bursts ascend from 1.
	Bursts []uint64       `json:"bursts"`
	Rates  []rateRefusals `json:"rates"`
	// Rate and Burst are the indexes of the suggested limit, and 0 if there is none.
	Rate  int `json:"rate"`
	Burst int `json:"burst"`
}

// rateRefusals has the refusals of each burst at one rate.
type rateRefusals struct {
	Rate string `json:"rate"`
	// Clients has the number of clients that are refused at least once.
	Clients []uint64 `json:"clients"`
	// Requests has the number of requests that are refused. It is null if costs vary or are not whole,
	// and if there are too many requests to count the refused ones.
	Requests []uint64 `json:"requests"`
}

// newCurve returns the refusals at the rates of a suggestion, up to the greatest burst of its
// table.
func (s *Suggestion) newCurve(found *suggest.Result) *refusalCurve {
	c := &refusalCurve{
		Clients: len(found.Clients), Requests: found.Requests, OneIn: found.OneIn,
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
		c.Rate, c.Burst = s.Limit.index, i
	}
	for i := range s.Rates {
		clients, requests := found.Refusals(i, c.Bursts)
		c.Rates = append(c.Rates, rateRefusals{s.Rates[i].Rate, clients, requests})
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
