package replay

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// WriteText writes the report as text: the answer, whom it hits, what to do next, the clients, and
// notes about the log.
func (rep *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	for _, sentence := range rep.answer() {
		b.WriteString(sentence + "\n")
	}
	rep.writeData(&b)
	rep.kindTable().write(&b)
	rep.writeSteps(&b)
	for _, t := range append([]table{rep.clientTable(shownKeys)}, rep.otherTables()...) {
		t.write(&b)
	}
	rep.writeNotes(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// shownKeys is how many keys the text has. The page and JSON have topKeys.
const shownKeys = 10

// answer returns why the answer may be wrong, the limit, and what it refuses, in sentences.
func (rep *Report) answer() (lines []string) {
	if rep.Interrupted {
		lines = append(lines, "INTERRUPTED: this report covers the requests up to the interrupt.")
	}
	if rep.Sample {
		lines = append(lines, "GENERATED SAMPLE: this log is made up, it is not real traffic.")
	}
	for _, doubt := range rep.Doubts {
		lines = append(lines, "CAUTION: "+doubt)
	}
	switch {
	case rep.NoAnswer != "":
		return append(lines, rep.NoAnswer)
	case rep.Requests == 0:
		return append(lines, "There is no request in the log.",
			"Look whether it is the right file. --format says how to read its lines.")
	case rep.Policy != nil:
		lines = append(lines, fmt.Sprintf("The policy refuses %s.",
			ofAll(rep.Policy.Refused, rep.Requests, "request")))
	default:
		lines = append(lines, rep.theLimit(), rep.cost())
	}
	if rep.Suggestion != nil {
		lines = append(lines, rep.validity())
	}
	if rep.remark != "" {
		lines = append(lines, rep.remark)
	}
	return append(lines, fmt.Sprintf("The busiest second, %s, has %s.",
		dateTime(rep.Busiest.Second), counted(rep.Busiest.Requests, "request")))
}

func (rep *Report) validity() string {
	s := rep.Suggestion
	text := fmt.Sprintf("It holds for traffic as in these %s.", spanText(rep))
	if s.Trial == nil {
		return text
	}
	return text + fmt.Sprintf(" The first half asks for a burst of %s. On the other half it would"+
		" have refused %s that count.", grouped(s.Trial.Burst),
		ofAll(s.Trial.Refused, s.Trial.Clients, rep.thing()))
}

func spanText(rep *Report) string {
	return durationText(max(rep.Last.Sub(rep.First).Round(time.Second), time.Second))
}

func (rep *Report) theLimit() string {
	l, name := rep.Limit, "Limit"
	if rep.Suggestion != nil {
		name = "Suggested limit"
	}
	return fmt.Sprintf("%s: %s, burst %s. A %s may send %s at once, and then %s.", name, l.Rate,
		grouped(l.Burst), rep.thing(), counted(l.Burst, "request"), l.Rate.pace())
}

func (rep *Report) cost() string {
	l := rep.Limit
	text := "It refuses " + ofAll(l.KeysRefused, rep.Keys, rep.thing())
	if !l.Uncounted {
		text += " and " + ofAll(l.Refused, rep.Requests, "request")
	}
	if s := rep.Suggestion; s != nil {
		text += ". With twice the burst: " + counted(s.TwiceTheBurst, rep.thing())
	}
	return text + "."
}

func (r Rate) pace() string {
	if each := r.Per / time.Duration(r.Tokens); each > time.Second {
		return "one every " + each.Round(time.Millisecond).String()
	}
	return r.String()
}

func (rep *Report) thing() string {
	if slices.Equal(rep.KeyParts, []string{"ip"}) {
		return "client"
	}
	return "key"
}

func (rep *Report) writeData(b *strings.Builder) {
	if rep.Requests > 0 {
		fmt.Fprintf(b, "This is from %s in %s, %s to %s UTC.\n", counted(rep.Requests, "request"),
			spanText(rep), dateTime(rep.First), dateTime(rep.Last))
	}
	key := strings.Join(rep.KeyParts, " + ")
	if slices.Contains(rep.KeyParts, "ip") {
		key += fmt.Sprintf(" (IPv6 by /%d)", rep.options.IPv6Prefix)
	}
	if rep.Policy == nil && key != "ip (IPv6 by /64)" {
		fmt.Fprintf(b, "A key is %s.\n", key)
	}
	var sum File
	var formats []string
	for _, f := range rep.Files {
		sum.Lines += f.Lines
		sum.Malformed += f.Malformed
		sum.Others += f.Others
		if f.Format != "" && !slices.Contains(formats, string(f.Format)) {
			formats = append(formats, string(f.Format))
		}
	}
	if len(formats) > 0 {
		fmt.Fprintf(b, "%s: %s, %s%s%s.\n", rep.logName(), counted(sum.Lines, "line"),
			strings.Join(formats, " and "), ifAny(sum.Others, ", %s of them not requests"),
			ifAny(sum.Malformed, ", %s malformed"))
	}
}

func (rep *Report) logName() string {
	if len(rep.Files) == 0 {
		return "nothing"
	}
	name := keyText([]string{rep.Files[0].Name})
	if n := len(rep.Files) - 1; n > 0 {
		name += fmt.Sprintf(" and %s more", grouped(n))
	}
	return name
}

func (rep *Report) writeSteps(b *strings.Builder) {
	l, o := rep.Limit, rep.options
	if l == nil || rep.Requests == 0 {
		return
	}
	file := "FILE"
	if rep.Sample {
		file = "--sample"
	}
	flags, proxyFlags := o.flags()
	steps := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	step := func(title, more, after string) {
		fmt.Fprintf(steps, "  %s\ttb replay%s%s %s%s\n", title, more, flags, file, after)
	}
	limit := fmt.Sprintf(" --rate %s --burst %d", l.Rate, l.Burst)
	b.WriteString("\n")
	if rep.Suggestion == nil {
		step("See it", " --html page.html"+limit, "")
		step("Find a limit", "", "")
		steps.Flush()
		return
	}
	step("See it", " --html page.html"+o.ask(), "")
	step("Try it", limit, "")
	_, noPolicy := policyOf(rep.Suggestion.plan(l), o)
	if noPolicy == nil {
		step("Export it", " --export policy"+o.ask(), " > policy.json")
		fmt.Fprintf(steps, "  Run it\ttb-proxy --policy policy.json%s\n", proxyFlags)
	}
	if !o.ByPath {
		step("Protect a path", " --by-path"+o.ask(), "")
	}
	steps.Flush()
	if noPolicy != nil {
		fmt.Fprintf(b, "There is no policy for tb-proxy: %s.\n", noPolicy)
	}
}

func (rep *Report) writeNotes(b *strings.Builder) {
	var notes strings.Builder
	note := func(n uint64, one, many, rest string) {
		if n > 0 {
			fmt.Fprintf(&notes, "%s %s %s.\n", grouped(n), plural(n, one, many), rest)
		}
	}
	note(rep.EvictedInDebt, "key in debt was", "keys in debt were",
		"dropped from a full table: a greater --max-keys refuses more requests")
	for _, name := range rep.KeyParts {
		note(rep.Missing[name], "request has", "requests have",
			"no "+name+": such requests share one bucket")
	}
	if rep.Policy != nil {
		note(rep.Policy.Unclear, "request is", "requests are",
			"answered by tb-proxy before any rule, such as for a path of two meanings")
	}
	for _, f := range rep.Files {
		if f.NoZone {
			fmt.Fprintf(&notes, "The times of %s have no zone, and are read as UTC.\n",
				keyText([]string{f.Name}))
		}
	}
	lines := func(title string, list []string) {
		if len(list) > 0 {
			fmt.Fprintf(&notes, "%s:\n  %s\n", title, strings.Join(list, "\n  "))
		}
	}
	lines("The first malformed lines", rep.Malformed)
	lines("The first lines that are not requests", rep.Others)
	if notes.Len() > 0 {
		b.WriteString("\n" + notes.String())
	}
}
