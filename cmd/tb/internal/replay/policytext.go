package replay

import (
	"fmt"
	"strings"
)

// writePolicy writes the decisions of a policy and of each of its rules.
func (rep *Report) writePolicy(b *strings.Builder) {
	o := rep.Policy
	b.WriteString("\n")
	row(b, "requests", "%12s", grouped(rep.Requests))
	row(b, "granted", "%12s %8s", grouped(o.Granted), percent(share(o.Granted, rep.Requests)))
	row(b, "refused", "%12s %8s", grouped(o.Refused), percent(share(o.Refused, rep.Requests)))
	if o.Unclear > 0 {
		row(b, "unclear", "%12s %8s   no path that all servers read alike: tb proxy answers 400",
			grouped(o.Unclear), percent(share(o.Unclear, rep.Requests)))
	}
	if o.NoAddress > 0 {
		row(b, "no client", "%12s %8s   no address: such requests share a bucket",
			grouped(o.NoAddress), percent(share(o.NoAddress, rep.Requests)))
	}
	b.WriteString("\n")
	table := columns(b)
	fmt.Fprintln(table, "granted\trefused\tshare\tkeys refused\tmode\t  rule")
	for _, r := range o.Rules {
		mode := "enforce"
		if r.Shadow {
			mode = "shadow"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t  %s\n", grouped(r.Granted), grouped(r.Refused),
			percent(share(r.Refused, r.Granted+r.Refused)), grouped(r.KeysRefused), mode, r.Rule)
	}
	table.Flush()
	for _, r := range o.Rules {
		writeRemarks(b, r.Rule, 0, r.EvictedInDebt, r.RefusedNew)
	}
	for _, r := range o.Rules {
		if len(r.Top) == 0 {
			continue
		}
		fmt.Fprintf(b, "\nRefused most by %s:\n\n", r.Rule)
		table := columns(b)
		fmt.Fprintln(table, "refused\t  key")
		for _, k := range r.Top {
			fmt.Fprintf(table, "%s\t  %s\n", atLeast(k.Partial)+grouped(k.Refused), shorten(k.Key, 100))
		}
		table.Flush()
	}
}
