package replay

import (
	"fmt"
	"io"
	"math"
	"net/netip"
	"slices"
	"strings"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/cmd/internal/suggest"
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
	// Candidates has a limit for each share of the clients, if a burst is enough.
	Candidates []Candidate `json:"candidates"`
	// Paths has the limits of the paths with the most requests, if --by-path asks for them.
	Paths []PathLimit `json:"paths"`
	// Together is how many clients the limits of the policy ever refuse, at most the share that
	// --suggest asks for. It is an estimate from one client in TogetherOneIn. Both are left out without
	// --by-path.
	Together      uint64 `json:"together,omitempty"`
	TogetherOneIn uint64 `json:"together_one_in,omitempty"`
	// Limit is the suggested limit. It is left out if no burst is enough, and if there are no clients.
	Limit *SuggestedLimit `json:"limit,omitempty"`

	// Export is the text that --export or --by-path asks for. It is left out if there is none, for the
	// reason in NoExport.
	Export   string `json:"export,omitempty"`
	NoExport string `json:"no_export,omitempty"`

	share       Share
	least       uint64 // the least burst of a limit
	found       *suggest.Result
	export      string // the name of what is exported
	exportFile  string
	alone       bool // the export is printed by itself
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

	rate Rate
}

// ShareBurst is the burst for a share.
type ShareBurst struct {
	Share float64 `json:"share"`
	Burst uint64  `json:"burst"`
}

// newCollector returns the collector of a suggestion.
func newCollector(o *Options) *suggest.Collector {
	var limits []tb.Limit
	for _, r := range o.Rates {
		limits = append(limits, r.limit(1))
	}
	return suggest.New(limits, o.Cost.costs(), o.MaxKeys)
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
	s := newSuggestion(o, r.found, &r.habits, 1)
	if r.paths != nil {
		s = r.suggestionByPath(o)
	}
	s.replayFlags, s.proxyFlags = suggestedFlags(o, schema)
	if s.Limit != nil {
		s.Limit.addPolicy(o)
		s.Limit.NoAddress = countNoAddress(r.found.Clients, slices.Index(o.Keys, "ip"))
	}
	if o.Picture {
		s.curve = s.newCurve(o, r.found)
	}
	s.alone = o.Export != ""
	if s.export = o.Export; o.ByPath && s.export == "" {
		s.export = "policy"
	}
	switch {
	case s.export == "" || s.Limit == nil:
	case s.export == "policy" && s.Limit.Policy == nil:
		s.NoExport = s.Limit.NoPolicy
	case s.export != "policy" && (!slices.Equal(o.Keys, []string{"ip"}) || o.Cost.constant != 1):
		s.NoExport = "it needs --key ip and --cost 1"
	case s.export == "nginx" && o.IPv6Prefix%8 != 0:
		s.NoExport = "it needs whole bytes in --ipv6-prefix, such as 48, 56 or 64"
	default:
		s.Export, s.exportFile = exported(o, s.plan(), uint64(s.Clients)*s.OneIn)
	}
	return s
}

// newSuggestion returns the suggestion for clients, with its limit, whose burst is at least the
// least one.
func newSuggestion(o *Options, found *suggest.Result, h *habits, least uint64) *Suggestion {
	s := &Suggestion{
		Clients: len(found.Clients), OneIn: found.OneIn, Share: o.Suggest.fraction,
		Rates: []RateBursts{}, Paths: []PathLimit{}, share: o.Suggest,
		found: found, least: least,
	}
	shares := fractions(o.Suggest.columns())
	for i, rate := range o.Rates {
		b := RateBursts{
			Rate: rate.String(), rate: rate,
			Clients: shareBursts(shares, found.ForClients(i, shares)),
		}
		s.Rates = append(s.Rates, b)
	}
	if s.Limit = s.choose(s.Share); s.Limit != nil {
		s.Limit.addRefused(found, h)
	}
	s.addCandidates(o, found, h)
	return s
}

// shareBursts pairs shares with their bursts.
func shareBursts(shares []float64, bursts []uint64) (all []ShareBurst) {
	for i, share := range shares {
		all = append(all, ShareBurst{share, orZero(bursts[i])})
	}
	return all
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

// orZero returns a burst, and 0 if none is enough.
func orZero(burst uint64) uint64 {
	if burst == suggest.None {
		return 0
	}
	return burst
}

// writeSuggestion writes the table of bursts, and the suggested limit with the clients that it
// refuses.
func (rep *Report) writeSuggestion(b *strings.Builder) {
	s := rep.Suggestion
	b.WriteString("\n")
	row(b, "requests", "%12s", grouped(rep.Requests))
	row(b, "keys", "%12s%s", grouped(rep.Keys), rep.keysNote())
	switch {
	case s.Clients == 0 && rep.Requests > 0:
		b.WriteString("\nNo key is in the sample that fits into --max-keys.\n")
	case s.OneIn > 1:
		fmt.Fprintf(b, "\nThe keys did not fit into --max-keys: this is an estimate from %s of them,"+
			" one in %s.\n", grouped(s.Clients), grouped(s.OneIn))
	}
	if s.Clients == 0 {
		return
	}
	s.writeTable(b)
	if s.Limit == nil {
		b.WriteString("\nNo burst is enough.\n")
		return
	}
	s.writeCandidates(b, rep.Requests)
	s.Limit.write(b, s)
	if s.export != "" {
		s.writePaths(b, rep.Requests)
	}
	if s.export != "" && !s.alone {
		s.writeExport(b)
	}
}

// writeTable writes the bursts of each rate.
func (s *Suggestion) writeTable(b *strings.Builder) {
	b.WriteString("\nLeast burst with which at most a share of the clients is ever refused:\n\n")
	table := columns(b)
	head := []string{"rate"}
	for _, share := range s.share.columns() {
		head = append(head, share.String())
	}
	fmt.Fprintln(table, strings.Join(head, "\t")+"\t")
	for i, r := range s.Rates {
		cells := []string{r.Rate}
		for _, c := range r.Clients {
			cells = append(cells, burstText(c.Burst))
		}
		if s.Limit != nil && s.Limit.index == i {
			cells[0] = "> " + cells[0]
		}
		fmt.Fprintln(table, strings.Join(cells, "\t")+"\t")
	}
	table.Flush()
}

// burstText writes a burst, if one is enough.
func burstText(burst uint64) string {
	if burst == 0 {
		return "-"
	}
	return grouped(burst)
}

// writeExport writes the limits as a policy.
func (s *Suggestion) writeExport(b *strings.Builder) {
	if s.NoExport != "" {
		fmt.Fprintf(b, "\nThere is no policy: %s.\n", s.NoExport)
		return
	}
	fmt.Fprintf(b, "\n%s:\n\n%s\n", s.exportFile, s.Export)
}

// printExport prints what --export asks for, or returns why there is nothing to print.
func (rep *Report) printExport(stdout io.Writer) error {
	s := rep.Suggestion
	why := s.NoExport
	switch {
	case s.Clients == 0:
		why = "the log has no request"
	case s.Limit == nil:
		why = "no burst is enough"
	}
	if why != "" {
		return fmt.Errorf("--export %s: there is no configuration: %s", s.export, why)
	}
	_, err := fmt.Fprintln(stdout, s.Export)
	return err
}
