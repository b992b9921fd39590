package replay

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/suggest"
)

// Candidate is the limit at the knee for a share of the clients, and what an error in it costs.
type Candidate struct {
	Share float64 `json:"share"`
	Rate  string  `json:"rate"`
	Burst uint64  `json:"burst"`
	// ClientsRefused is how many clients are ever refused.
	ClientsRefused uint64 `json:"clients_refused"`
	// RequestsRefused is how many requests are refused, which is the load that the limit saves. It is
	// left out if costs vary or are not whole, if there are more than 4,194,304 requests, and if the
	// clients are a sample.
	RequestsRefused *uint64 `json:"requests_refused,omitempty"`
	// LongestWait is the most seconds that a refused client has to wait for a request. It is left out
	// if costs vary.
	LongestWait float64 `json:"longest_wait_seconds,omitempty"`
	// Crawlers are the known crawlers among the refused clients, as in Habit, of the clients with the
	// most requests.
	Crawlers []string `json:"crawlers,omitempty"`

	share Share
}

// addCandidates adds the limits for all shares.
func (s *Suggestion) addCandidates(o *Options, found *suggest.Result, h *habits) {
	s.Candidates = []Candidate{}
	crawlers := make(map[*suggest.Client]string)
	for _, c := range found.Clients {
		if name := h.of(c.Key).Crawler; name != "" {
			crawlers[c] = name
		}
	}
	for _, share := range s.share.columns() {
		l := s.choose(share.fraction)
		if l == nil {
			continue
		}
		c := Candidate{
			Share: share.fraction, Rate: l.Rate, Burst: l.Burst, share: share,
			LongestWait: o.Cost.constant / l.rate.approximate(),
		}
		clients, requests := found.Refusals(l.index, []uint64{l.Burst})
		if c.ClientsRefused = clients[0]; requests != nil {
			c.RequestsRefused = &requests[0]
		}
		for client, name := range crawlers {
			if found.Need(client, l.index) > l.Burst {
				c.Crawlers = append(c.Crawlers, name)
			}
		}
		slices.Sort(c.Crawlers)
		c.Crawlers = slices.Compact(c.Crawlers)
		s.Candidates = append(s.Candidates, c)
	}
}

// writeCandidates writes what the limits for other shares cost.
func (s *Suggestion) writeCandidates(b *strings.Builder, requests uint64) {
	b.WriteString("\nThe knee at each share, the clients that it hurts, and the load that it" +
		" saves:\n\n")
	table := columns(b)
	fmt.Fprintln(table, "share\tlimit\tclients\tof all\trequests\tof all\tlongest wait\t")
	for _, c := range s.Candidates {
		load, part, wait := "-", "-", "-"
		if n := c.RequestsRefused; n != nil {
			load, part = grouped(*n), percent(share(*n, requests))
		}
		if c.LongestWait > 0 && c.ClientsRefused > 0 {
			const longest = 9e9 // about the longest Duration
			wait = durationText(time.Duration(min(c.LongestWait, longest) * float64(time.Second)))
		}
		fmt.Fprintf(table, "%s\t%s, burst %s\t%s\t%s\t%s\t%s\t%s\t\n", c.share, c.Rate,
			grouped(c.Burst), grouped(c.ClientsRefused),
			percent(share(c.ClientsRefused, uint64(s.Clients))), load, part, wait)
	}
	table.Flush()
	for i, c := range s.Candidates {
		isNew := i == 0 || c.Rate != s.Candidates[i-1].Rate || c.Burst != s.Candidates[i-1].Burst
		if isNew && len(c.Crawlers) > 0 {
			fmt.Fprintf(b, "Known crawlers that %s, burst %s refuses: %s.\n", c.Rate, grouped(c.Burst),
				strings.Join(c.Crawlers, ", "))
		}
	}
}
