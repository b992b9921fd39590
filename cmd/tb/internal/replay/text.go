package replay

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// WriteText writes the report for a person to read: what was replayed, what the limit
// would have done (of several, a table of them), and what there is to know about the log.
func (rep *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	rep.writeInput(&b)
	if len(rep.Limits) == 1 {
		rep.writeOutcome(&b, &rep.Limits[0])
	} else {
		rep.writeSweep(&b)
	}
	rep.writeNotes(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// row writes one line of the summary: a label and, in a column of their own, its values.
func row(b *strings.Builder, label, format string, args ...any) {
	fmt.Fprintf(b, "%-9s "+format+"\n", append([]any{label}, args...)...)
}

// writeInput says what was replayed.
func (rep *Report) writeInput(b *strings.Builder) {
	if rep.Interrupted {
		b.WriteString("INTERRUPTED: this is what was read until then.\n")
	}
	if rep.Sample {
		b.WriteString("GENERATED SAMPLE: this log was made up, it is nobody's traffic.\n")
	}
	for _, f := range rep.Files {
		format := cmp.Or(string(f.Format), "none valid")
		row(b, "log", "%s: %s %s, %s%s", f.Name, count(f.Lines),
			several(f.Lines, "line", "lines"), format,
			some(f.Malformed, ", %s malformed"))
	}
	row(b, "key", "%s, cost %s", rep.keyText(), rep.Cost)
	if rep.Requests > 0 {
		row(b, "time", "%s to %s UTC (%s)", stamp(rep.First), stamp(rep.Last),
			rep.Last.Sub(rep.First).Round(time.Second))
	}
}

// keyText names the parts of the key.
func (rep *Report) keyText() string {
	text := strings.Join(rep.KeyParts, " + ")
	if slices.Contains(rep.KeyParts, "ip") {
		text += fmt.Sprintf(" (IPv6 by /%d)", rep.ipv6Prefix)
	}
	return text
}

// writeOutcome says what a single limit would have done.
func (rep *Report) writeOutcome(b *strings.Builder, o *Outcome) {
	row(b, "limit", "%s, burst %s\n", o.Rate, count(o.Burst))
	row(b, "requests", "%12s", count(rep.Requests))
	row(b, "granted", "%12s %8s", count(o.Granted), percent(share(o.Granted, rep.Requests)))
	row(b, "refused", "%12s %8s%s", count(o.Refused), percent(o.RefusedShare),
		some(o.NeverGranted, "   %s of them can never be granted: the cost is above the burst"))
	row(b, "keys", "%12s%s", count(rep.Keys), rep.estimated())
	row(b, "  refused", "%12s %8s   at least once", count(o.KeysRefused),
		percent(o.KeysRefusedShare))
	forgiven := uint64(math.Ceil(o.Forgiven))
	row(b, "evicted", "%12s            in debt%s%s", count(o.EvictedInDebt),
		some(forgiven, ", forgiving them %s "+several(forgiven, "token", "tokens")),
		some(o.RefusedNew, "; %s "+several(o.RefusedNew, "request", "requests")+
			" refused: the key was new and the table full"))
	rep.writeTop(b)
}

// columns returns a writer of right-aligned columns.
func columns(b *strings.Builder) *tabwriter.Writer {
	return tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
}

// estimated says so if the keys were too many to count.
func (rep *Report) estimated() string {
	if rep.KeysExact {
		return ""
	}
	return "            estimated, within about 1 %"
}

// writeTop lists the keys refused most.
func (rep *Report) writeTop(b *strings.Builder) {
	if len(rep.Top) == 0 {
		return
	}
	b.WriteString("\nRefused most:\n\n")
	table := columns(b)
	fmt.Fprintln(table, "refused\tof requests\tshare\tpeak/s\tlongest run\t  key")
	partial := false
	for _, k := range rep.Top {
		partial = partial || k.Partial
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t  %s\n",
			atLeast(k.RefusedMost > k.Refused)+count(k.Refused),
			atLeast(k.Partial)+count(k.Requests), percent(share(k.Refused, k.Requests)),
			count(k.Peak), count(k.LongestRun), keyText(k.Key))
	}
	table.Flush()
	if partial {
		b.WriteString("\n≥: there were more keys than are tracked," +
			" so earlier requests may be missing.\n")
	}
}

// atLeast marks a number that is a lower bound.
func atLeast(bound bool) string {
	if bound {
		return "≥ "
	}
	return ""
}

// keyText renders a key on one line. What it contains comes from strangers, so what is not
// printable is quoted: no log can move the cursor of the terminal that shows it.
func keyText(parts []string) string {
	const longest = 80
	var texts []string
	for _, p := range parts {
		if p == "" {
			p = "-"
		}
		if quoted := strconv.Quote(p); quoted != `"`+p+`"` {
			p = quoted
		}
		texts = append(texts, shorten(p, longest))
	}
	return strings.Join(texts, " ")
}

// shorten cuts a text off behind that many runes.
func shorten(s string, runes int) string {
	if r := []rune(s); len(r) > runes {
		return string(r[:runes-1]) + "…"
	}
	return s
}

// writeSweep compares the limits.
func (rep *Report) writeSweep(b *strings.Builder) {
	row(b, "\nrequests", "%12s", count(rep.Requests))
	row(b, "keys", "%12s%s\n", count(rep.Keys), rep.estimated())
	table := columns(b)
	fmt.Fprintln(table, "rate\tburst\trefused\tof requests\tkeys refused\tof keys\t")
	for _, o := range rep.Limits {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t\n", o.Rate, count(o.Burst), count(o.Refused),
			percent(o.RefusedShare), count(o.KeysRefused), percent(o.KeysRefusedShare))
	}
	table.Flush()
	for i := range rep.Limits {
		rep.Limits[i].writeRemarks(b)
	}
}

// writeRemarks says what the numbers of a limit do not.
func (o *Outcome) writeRemarks(b *strings.Builder) {
	remarks := some(o.NeverGranted, "; %s can never be granted: the cost is above the burst") +
		some(o.EvictedInDebt, "; %s "+several(o.EvictedInDebt, "key", "keys")+" evicted in debt") +
		some(o.RefusedNew, "; %s refused: the key was new and the table full")
	if remarks != "" {
		fmt.Fprintf(b, "%s burst %s%s\n", o.Rate, count(o.Burst), remarks)
	}
}

// writeNotes says what the log had that a person should know of.
func (rep *Report) writeNotes(b *strings.Builder) {
	var notes strings.Builder
	if n := rep.SteppedBack; n > 0 {
		fmt.Fprintf(&notes, "%s of %s requests %s earlier than the line before, by up to %s: time"+
			" never moves\nback, so what was late for its bucket found it as it stood.\n",
			count(n), count(rep.Requests), several(n, "is", "are"), rounded(rep.longestStep))
	}
	for _, name := range rep.KeyParts {
		if n := rep.Missing[name]; n > 0 {
			fmt.Fprintf(&notes, "%s %s no %s: such requests share one bucket.\n",
				count(n), several(n, "request has", "requests have"), name)
		}
	}
	if n := rep.CostStandIns; n > 0 {
		fmt.Fprintf(&notes, "%s %s no positive %s: each cost 1 token.\n",
			count(n), several(n, "request has", "requests have"), rep.Cost)
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
