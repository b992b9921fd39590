package replay

import (
	"fmt"
	"strings"
)

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
	if s.Check != nil {
		s.Check.write(b)
	}
	if s.export != "" {
		s.writePaths(b, rep.Requests)
		s.writeExport(b)
	}
}

// writeTable writes the bursts of each rate.
func (s *Suggestion) writeTable(b *strings.Builder) {
	b.WriteString("\nLeast burst with which at most a share of the clients is ever refused")
	hasRequests := len(s.Rates[0].Requests) > 0
	if hasRequests {
		b.WriteString(" or, on the\nright, a share of the requests")
	}
	b.WriteString(":\n\n")
	table := columns(b)
	shares := s.share.columns()
	head := []string{"rate"}
	for _, share := range shares {
		head = append(head, share.String())
	}
	if hasRequests {
		for _, share := range shares[1:] {
			head = append(head, share.String())
		}
		head[1+len(shares)] = "|  " + head[1+len(shares)]
	}
	fmt.Fprintln(table, strings.Join(head, "\t")+"\t")
	for i, r := range s.Rates {
		cells := []string{r.Rate}
		for _, c := range r.Clients {
			cells = append(cells, burstText(c.Burst))
		}
		if hasRequests {
			for _, c := range r.Requests[1:] {
				cells = append(cells, burstText(c.Burst))
			}
		}
		if s.Limit != nil && s.Limit.index == i {
			cells[0] = "> " + cells[0]
		}
		fmt.Fprintln(table, strings.Join(cells, "\t")+"\t")
	}
	table.Flush()
	if !hasRequests {
		b.WriteString("\nThere are no bursts for a share of the requests, because costs vary or are not" +
			" whole tokens.\n")
	}
}

// burstText writes a burst, if one is enough.
func burstText(burst uint64) string {
	if burst == 0 {
		return "-"
	}
	return grouped(burst)
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
	switch {
	case s.export != "":
	case l.Policy == nil:
		fmt.Fprintf(b, "\nThere is no policy for tb proxy: %s.\n", l.NoPolicy)
	default:
		fmt.Fprintf(b, "  tb proxy --policy policy.json%s\n\npolicy.json:\n\n%s\n", s.proxyFlags,
			l.Policy.text())
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
			clientText(c.Key, c.Name, c.Habit))
	}
	table.Flush()
}

// writeExport writes the limits for a program.
func (s *Suggestion) writeExport(b *strings.Builder) {
	if s.noExport != "" {
		fmt.Fprintf(b, "\nThere is no %s configuration: %s.\n", s.export, s.noExport)
		return
	}
	fmt.Fprintf(b, "\n%s:\n\n%s\n", s.exportFile, s.Export)
}
