package replay

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// WriteText writes the report as text: the input, the outcome of the limit or a table of
// several, and notes about the log.
func (rep *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	rep.writeInput(&b)
	if rep.firstLook {
		rep.writeFirst(&b)
	}
	switch {
	case rep.Suggestion != nil:
		rep.writeSuggestion(&b)
	case rep.Policy != nil:
		rep.writePolicy(&b)
	case len(rep.Limits) == 1:
		rep.writeOutcome(&b, &rep.Limits[0])
		if len(rep.Algorithms) > 0 {
			rep.writeAlgorithms(&b)
		}
	default:
		rep.writeSweep(&b)
	}
	rep.writeNotes(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// row writes one line of the summary: a label, and its values in their own columns.
func row(b *strings.Builder, label, format string, args ...any) {
	fmt.Fprintf(b, "%-9s "+format+"\n", append([]any{label}, args...)...)
}

// writeInput writes the inputs, the key and the time that they cover.
func (rep *Report) writeInput(b *strings.Builder) {
	if rep.Interrupted {
		b.WriteString("INTERRUPTED: this report covers the requests up to the interrupt.\n")
	}
	if rep.Sample {
		b.WriteString("GENERATED SAMPLE: this log is made up, it is not real traffic.\n")
	}
	rep.writeFiles(b)
	if rep.Policy == nil {
		key := strings.Join(rep.KeyParts, " + ")
		if slices.Contains(rep.KeyParts, "ip") {
			key += fmt.Sprintf(" (IPv6 by /%d)", rep.ipv6Prefix)
		}
		row(b, "key", "%s, cost %s", key, rep.Cost)
	}
	if rep.Requests > 0 {
		row(b, "time", "%s to %s UTC (%s)", dateTime(rep.First), dateTime(rep.Last),
			durationText(rep.Last.Sub(rep.First).Round(time.Second)))
	}
}

// maxFiles is how many files a report lists. It sums up the others.
const maxFiles = 10

// writeFiles writes a line for each input.
func (rep *Report) writeFiles(b *strings.Builder) {
	var others File
	for i, f := range rep.Files {
		if i >= maxFiles {
			others.Lines += f.Lines
			others.Malformed += f.Malformed
			continue
		}
		format := cmp.Or(string(f.Format), "none valid")
		row(b, "log", "%s: %s %s, %s%s", f.Name, grouped(f.Lines),
			plural(f.Lines, "line", "lines"), format, ifAny(f.Malformed, ", %s malformed"))
	}
	if n := len(rep.Files) - maxFiles; n > 0 {
		row(b, "log", "%s more %s: %s %s%s", grouped(n), plural(n, "file", "files"),
			grouped(others.Lines), plural(others.Lines, "line", "lines"),
			ifAny(others.Malformed, ", %s malformed"))
	}
}

// writeOutcome writes the decisions of a single limit.
func (rep *Report) writeOutcome(b *strings.Builder, o *Outcome) {
	row(b, "limit", "%s, burst %s\n", o.Rate, grouped(o.Burst))
	row(b, "requests", "%12s", grouped(rep.Requests))
	row(b, "granted", "%12s %8s", grouped(o.Granted), percent(share(o.Granted, rep.Requests)))
	row(b, "refused", "%12s %8s%s", grouped(o.Refused), percent(o.RefusedShare),
		ifAny(o.NeverGranted, "   %s of them can never be granted: the cost is above the burst"))
	row(b, "keys", "%12s%s", grouped(rep.Keys), rep.keysNote())
	row(b, "  refused", "%12s %8s   at least once", grouped(o.KeysRefused),
		percent(o.KeysRefusedShare))
	forgiven := uint64(math.Ceil(o.Forgiven))
	row(b, "evicted", "%12s            in debt%s%s", grouped(o.EvictedInDebt),
		ifAny(forgiven, ", forgiving them %s "+plural(forgiven, "token", "tokens")),
		ifAny(o.RefusedNew, "; %s "+plural(o.RefusedNew, "request", "requests")+
			" refused: the key was new and the table full"))
	if len(rep.Top) > 0 {
		b.WriteString("\n")
	}
	writeTop(b, rep.Top)
}

// columns returns a writer of right-aligned columns.
func columns(b *strings.Builder) *tabwriter.Writer {
	return tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
}

// leftColumns returns a writer of left-aligned columns.
func leftColumns(b *strings.Builder) *tabwriter.Writer {
	return tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
}

// keysNote marks the number of keys if it is an estimate.
func (rep *Report) keysNote() string {
	switch {
	case rep.KeysExact:
		return ""
	case rep.Suggestion != nil:
		return "            estimated"
	}
	return "            estimated, within about 1 %"
}

// writeTop writes the keys refused most, which may be none.
func writeTop(b *strings.Builder, top []TopKey) {
	if len(top) == 0 {
		return
	}
	b.WriteString("Refused most:\n\n")
	table := columns(b)
	fmt.Fprintln(table, "refused\tof requests\tshare\tpeak/s\tlongest run\t  key")
	partial := false
	for _, k := range top {
		partial = partial || k.Partial
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t  %s\n",
			atLeast(k.RefusedMost > k.Refused)+grouped(k.Refused),
			atLeast(k.Partial)+grouped(k.Requests), percent(share(k.Refused, k.Requests)),
			grouped(k.Peak), grouped(k.LongestRun),
			clientText(k.Key, k.Habit))
	}
	table.Flush()
	if partial {
		b.WriteString("\n≥: there were more keys than are tracked," +
			" so earlier requests may be missing.\n")
	}
}

// writeSweep writes a table of the limits.
func (rep *Report) writeSweep(b *strings.Builder) {
	row(b, "\nrequests", "%12s", grouped(rep.Requests))
	row(b, "keys", "%12s%s\n", grouped(rep.Keys), rep.keysNote())
	table := columns(b)
	fmt.Fprintln(table, "rate\tburst\trefused\tof requests\tkeys refused\tof keys\t")
	for _, o := range rep.Limits {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t\n", o.Rate, grouped(o.Burst), grouped(o.Refused),
			percent(o.RefusedShare), grouped(o.KeysRefused), percent(o.KeysRefusedShare))
	}
	table.Flush()
	for _, o := range rep.Limits {
		writeRemarks(b, o.Rate+" burst "+grouped(o.Burst), o.NeverGranted, o.EvictedInDebt, o.RefusedNew)
	}
}

// writeRemarks writes the counts of a limit that its table does not have, if any is above 0.
func writeRemarks(
	b *strings.Builder, limit string, neverGranted, evictedInDebt, refusedNew uint64,
) {
	remarks := ifAny(neverGranted, "; %s can never be granted: the cost is above the burst") +
		ifAny(evictedInDebt, "; %s "+plural(evictedInDebt, "key", "keys")+" evicted in debt") +
		ifAny(refusedNew, "; %s refused: the key was new and the table full")
	if remarks != "" {
		fmt.Fprintf(b, "%s%s\n", limit, remarks)
	}
}

// writeNotes writes the irregularities of the log.
func (rep *Report) writeNotes(b *strings.Builder) {
	var notes strings.Builder
	rep.Clients.write(&notes, rep.Requests, rep.trusted)
	rep.writeOrder(&notes)
	for _, name := range rep.KeyParts {
		if n := rep.Missing[name]; n > 0 {
			fmt.Fprintf(&notes, "%s %s no %s: such requests share one bucket.\n",
				grouped(n), plural(n, "request has", "requests have"), name)
		}
	}
	if n := rep.CostStandIns; n > 0 {
		fmt.Fprintf(&notes, "%s %s no positive %s: each cost 1 token.\n",
			grouped(n), plural(n, "request has", "requests have"), rep.Cost)
	}
	for i, line := range rep.Malformed {
		if i == 0 {
			notes.WriteString("The first malformed lines:\n")
		}
		fmt.Fprintf(&notes, "  %s\n", line)
	}
	if notes.Len() > 0 {
		b.WriteString("\n" + notes.String())
	}
}

// writeOrder says how far the lines are out of order, and what depends on it.
func (rep *Report) writeOrder(b *strings.Builder) {
	n := rep.SteppedBack
	if n == 0 {
		return
	}
	fmt.Fprintf(b, "%s of %s requests %s earlier than the line before, by up to %s."+
		"\nRequests are decided in the order of their times.",
		grouped(n), grouped(rep.Requests), plural(n, "is", "are"), durationText(rep.longestStep))
	if r := rep.RefusedInLineOrder; r != nil && *r != rep.Limits[0].Refused {
		fmt.Fprintf(b, "\nIn the order of the lines, the limit would refuse %s.", grouped(*r))
	}
	b.WriteString("\n")
	if n := rep.Late; n > 0 {
		fmt.Fprintf(b, "%s %s too late for the queue, and decided after later requests%s.\n",
			grouped(n), plural(n, "is", "are"), ifAny(rep.LateRefused, ": %s of them refused"))
	}
}
