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

// WriteText writes the report as text: the answer, what to do next, the clients, and notes about
// the log.
func (rep *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	if rep.Interrupted {
		b.WriteString("INTERRUPTED: this report covers the requests up to the interrupt.\n")
	}
	if rep.Sample {
		b.WriteString("GENERATED SAMPLE: this log is made up, it is not real traffic.\n")
	}
	rep.writeAnswer(&b)
	rep.writeSteps(&b)
	rep.writeClients(&b)
	if rep.Policy != nil {
		rep.Policy.write(&b, rep.all)
	}
	rep.writeTables(&b)
	if rep.all && rep.Suggestion != nil && rep.Requests > 0 {
		rep.Suggestion.writeRates(&b)
	}
	rep.writeNotes(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeTables writes the tables that a flag has asked for.
func (rep *Report) writeTables(b *strings.Builder) {
	if len(rep.Algorithms) > 0 {
		rep.writeAlgorithms(b)
	}
	if s := rep.Suggestion; s != nil && s.TogetherOneIn > 0 {
		s.writePaths(b, rep.Requests, rep.Keys)
	}
}

// writeAnswer writes the limit, what it costs, what it leaves of the load, and the data.
func (rep *Report) writeAnswer(b *strings.Builder) {
	b.WriteString(rep.headline())
	rate, burst := rep.limit()
	if rep.Requests > 0 && burst > 0 && rep.Cost == "1" {
		fmt.Fprintf(b, " A %s may send %s %s at once, and then %s.", rep.keyWord(1), grouped(burst),
			plural(burst, "request", "requests"), rate.pace())
	}
	b.WriteString("\n")
	if cost := rep.cost(); cost != "" {
		b.WriteString(cost + "\n")
	}
	if next := rep.nextStep(); next != "" {
		b.WriteString(next + "\n")
	}
	if l := rep.Busiest; l != nil && (burst > 0 || rep.Policy != nil) {
		fmt.Fprintf(b, "The busiest second, %s, has %s %s.", dateTime(l.Second), grouped(l.Requests),
			plural(l.Requests, "request", "requests"))
		if l.Left != nil {
			fmt.Fprintf(b, " The %s leaves %s.", rep.decider(), grouped(*l.Left))
		}
		b.WriteString("\n")
	}
	rep.writeData(b)
}

// decider returns what decides the requests.
func (rep *Report) decider() string {
	if rep.Policy != nil {
		return "policy"
	}
	return "limit"
}

// limit returns the limit that was replayed or suggested; its burst is 0 if there is none.
func (rep *Report) limit() (rate Rate, burst uint64) {
	switch l := rep.suggestedLimit(); {
	case l != nil:
		return l.rate, l.Burst
	case rep.Limit != nil:
		return rep.Limit.rate, uint64(rep.Limit.Burst)
	}
	return rate, 0
}

// suggestedLimit returns the suggested limit, nil if there is none.
func (rep *Report) suggestedLimit() *SuggestedLimit {
	if rep.Suggestion == nil {
		return nil
	}
	return rep.Suggestion.Limit
}

// pace says in words how fast requests may be.
func (r Rate) pace() string {
	switch each := r.Per / time.Duration(r.Tokens); {
	case each <= time.Second:
		return r.String()
	case each*time.Duration(r.Tokens) == r.Per:
		return "one every " + durationText(each)
	}
	return fmt.Sprintf("%d every %s", r.Tokens, durationText(r.Per))
}

// headline returns the outcome in a sentence.
func (rep *Report) headline() string {
	s, l := rep.Suggestion, rep.Limit
	switch {
	case rep.Requests == 0:
		return "There is no request in the log."
	case rep.Policy != nil:
		return fmt.Sprintf("The policy refuses %s.",
			ofAll(rep.Policy.Refused, rep.Requests, "request", "requests"))
	case l != nil:
		return fmt.Sprintf("Limit: %s, burst %s.", l.Rate, grouped(l.Burst))
	case s.Limit != nil:
		return fmt.Sprintf("Suggested limit: %s, burst %s.", s.Limit.Rate, grouped(s.Limit.Burst))
	case !rep.KeysExact:
		return "There are too many keys for a suggestion."
	}
	return "No burst is enough."
}

// cost says in a sentence what the limit refuses. It is empty without one.
func (rep *Report) cost() string {
	var clients uint64
	var requests *uint64
	switch s := rep.Suggestion; {
	case rep.Requests == 0 || rep.Policy != nil:
		return ""
	case rep.Limit != nil:
		clients, requests = rep.Limit.KeysRefused, &rep.Limit.Refused
	case s.Limit == nil:
		return ""
	default:
		clients, requests = s.Limit.Refused, s.Limit.RequestsRefused
	}
	text := "It refuses " + ofAll(clients, rep.Keys, rep.keyWord(1), rep.keyWord(2))
	if requests != nil {
		text += " and " + ofAll(*requests, rep.Requests, "request", "requests")
	}
	return text + "."
}

// ofAll writes a number of all things and its share.
func ofAll(n, all uint64, one, many string) string {
	return fmt.Sprintf("%s of %s %s (%s)", grouped(n), grouped(all), plural(all, one, many),
		percent(share(n, all)))
}

// keyWord returns what a number of keys are.
func (rep *Report) keyWord(n int) string {
	if slices.Equal(rep.KeyParts, []string{"ip"}) {
		return plural(n, "client", "clients")
	}
	return plural(n, "key", "keys")
}

// fewRequests are too few for a suggestion without a warning.
const fewRequests = 100

// nextStep returns what to do about a result without a request, a refusal or a limit.
func (rep *Report) nextStep() string {
	s := rep.Suggestion
	switch {
	case rep.Requests == 0:
		return "Look whether it is the right file. --format says how to read its lines."
	case s != nil && s.Limit == nil && rep.KeysExact:
		return "Try higher rates, or a greater share in --suggest."
	case s != nil && s.Limit != nil && rep.Requests < fewRequests:
		return "That is from few requests: a log of some days gives a better limit."
	case s != nil && s.Limit != nil && s.Limit.AtEnd:
		return "Its rate is the lowest or the highest that was tried: others may be better."
	case rep.Limit != nil && rep.Limit.Refused == 0:
		return "Without --rate and --burst, tb replay finds the limit that the log needs."
	}
	return ""
}

// writeData writes on how much data the answer is.
func (rep *Report) writeData(b *strings.Builder) {
	if rep.Requests > 0 {
		fmt.Fprintf(b, "This is from %s %s", grouped(rep.Requests),
			plural(rep.Requests, "request", "requests"))
		if span := rep.Last.Sub(rep.First).Round(time.Second); span > 0 {
			fmt.Fprintf(b, " in %s", durationText(span))
		}
		fmt.Fprintf(b, ", %s to %s UTC.\n", dateTime(rep.First), dateTime(rep.Last))
	}
	key := strings.Join(rep.KeyParts, " + ")
	if slices.Contains(rep.KeyParts, "ip") {
		key += fmt.Sprintf(" (IPv6 by /%d)", rep.ipv6Prefix)
	}
	if rep.Policy == nil && (key != "ip (IPv6 by /64)" || rep.Cost != "1") {
		fmt.Fprintf(b, "A key is %s, and a request costs %s.\n", key, rep.Cost)
	}
	rep.writeFiles(b)
}

// maxFiles is how many files a report lists. It sums up the others.
const maxFiles = 3

// writeFiles writes a line for each input.
func (rep *Report) writeFiles(b *strings.Builder) {
	var others File
	for i, f := range rep.Files {
		if i >= maxFiles && !rep.all {
			others.Lines += f.Lines
			others.Malformed += f.Malformed
			continue
		}
		fmt.Fprintf(b, "%s: %s %s, %s%s%s.\n", f.Name, grouped(f.Lines),
			plural(f.Lines, "line", "lines"), cmp.Or(string(f.Format), "none valid"),
			ifAny(f.Others, ", %s of them not requests"), ifAny(f.Malformed, ", %s malformed"))
	}
	if n := len(rep.Files) - maxFiles; n > 0 && !rep.all {
		fmt.Fprintf(b, "%s more %s: %s %s%s.\n", grouped(n), plural(n, "file", "files"),
			grouped(others.Lines), plural(others.Lines, "line", "lines"),
			ifAny(others.Malformed, ", %s malformed"))
	}
}

// writeSteps writes what to do next, a command on a line.
func (rep *Report) writeSteps(b *strings.Builder) {
	rate, burst := rep.limit()
	if burst == 0 || rep.Requests == 0 {
		return
	}
	file := "FILE"
	if rep.Sample {
		file = "--sample"
	}
	limit := fmt.Sprintf(" --rate %s --burst %d", rate, burst)
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	step := func(name, flags, after string) {
		fmt.Fprintf(table, "  %s\ttb replay%s%s %s%s\n", name, flags, rep.replayFlags, file, after)
	}
	b.WriteString("\n")
	s := rep.Suggestion
	if s == nil {
		step("See it", " --html page.html"+limit, "")
		step("Find a limit", "", "")
		table.Flush()
		return
	}
	step("See it", " --html page.html"+s.ask, "")
	step("Try it", limit, "")
	if s.Limit.Policy != nil {
		step("Export it", " --export policy"+s.ask, " > policy.json")
		fmt.Fprintf(table, "  Run it\ttb proxy --policy policy.json%s\n", rep.proxyFlags)
	}
	if s.TogetherOneIn == 0 {
		step("Protect a path", " --by-path"+s.ask, "")
	}
	step("See all tables", " --all"+s.ask, "")
	table.Flush()
	if s.Limit.Policy == nil {
		fmt.Fprintf(b, "There is no policy for tb proxy: %s.\n", s.Limit.NoPolicy)
	}
}

// columns returns a writer of right-aligned columns.
func columns(b *strings.Builder) *tabwriter.Writer {
	return tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
}

// shownRefused is how many of the keys refused most the text has without --all.
const shownRefused = 5

// writeClients writes the keys that send most and the keys that are refused most, which may be
// none, in one table.
func (rep *Report) writeClients(b *strings.Builder) {
	keys := slices.Clone(rep.Top)
	if !rep.all {
		keys = keys[:min(len(keys), shownRefused)]
	}
	for _, k := range rep.Senders {
		if !slices.ContainsFunc(keys, func(other TopKey) bool { return slices.Equal(other.Key, k.Key) }) {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return
	}
	slices.SortStableFunc(keys, func(a, c TopKey) int { return cmp.Compare(c.Requests, a.Requests) })
	b.WriteString("\nThe clients that send most, and that are refused most:\n\n")
	s := rep.Suggestion
	table := columns(b)
	fmt.Fprintf(table, "requests\trefused\tin a second\t")
	if s != nil {
		fmt.Fprintf(table, "burst to grant all\t")
	}
	fmt.Fprintf(table, "  %s\n", rep.keyWord(1))
	partial := false
	for _, k := range keys {
		partial = partial || k.Partial
		refused := atLeast(k.RefusedMost > k.Refused) + grouped(k.Refused)
		if s != nil && s.Limit.RequestsRefused == nil {
			refused = "-"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t", atLeast(k.Partial)+grouped(k.Requests), refused,
			grouped(k.Peak))
		if s != nil {
			fmt.Fprintf(table, "%s\t", burstText(k.Need))
		}
		fmt.Fprintf(table, "  %s\n", clientText(k.Key, k.Habit))
	}
	table.Flush()
	if partial {
		b.WriteString("\n≥: there were more keys than are tracked," +
			" so earlier requests may be missing.\n")
	}
}

// writeRates writes the bursts of each rate.
func (s *Suggestion) writeRates(b *strings.Builder) {
	b.WriteString("\nThe smallest burst that ever refuses at most this share of the clients," +
		" at each rate:\n\n")
	table := columns(b)
	fmt.Fprintf(table, "rate\t")
	for _, share := range s.share.columns() {
		fmt.Fprintf(table, "%s\t", share)
	}
	fmt.Fprintln(table)
	for i, r := range s.Rates {
		if s.Limit != nil && s.Limit.index == i {
			fmt.Fprintf(table, "> ")
		}
		fmt.Fprintf(table, "%s\t", r.Rate)
		for _, c := range r.Clients {
			fmt.Fprintf(table, "%s\t", burstText(c.Burst))
		}
		fmt.Fprintln(table)
	}
	table.Flush()
	if s.Limit != nil && s.Limit.raised {
		b.WriteString("\nThe log needs less, but a policy needs a burst of at least a second of its" +
			" rate.\n")
	}
}

// burstText writes a burst, if one is enough.
func burstText(burst uint64) string {
	if burst == 0 {
		return "-"
	}
	return grouped(burst)
}

// writeNotes writes the irregularities of the log and of the limiter.
func (rep *Report) writeNotes(b *strings.Builder) {
	var notes strings.Builder
	rep.Clients.write(&notes, rep)
	if !rep.KeysExact && rep.Limit != nil {
		fmt.Fprintf(&notes, "The number of %s is an estimate, within about 1 %%.\n", rep.keyWord(2))
	}
	if o := rep.Limit; o != nil {
		writeRemarks(&notes, "The limit", o.NeverGranted, o.EvictedInDebt, o.Forgiven, o.RefusedNew)
	}
	if rep.Policy != nil {
		for _, r := range rep.Policy.Rules {
			writeRemarks(&notes, r.Rule, 0, r.EvictedInDebt, r.Forgiven, r.RefusedNew)
		}
	}
	if n := rep.SteppedBack; n > 0 {
		fmt.Fprintf(&notes, "%s of %s %s %s earlier than the line before, by up to %s."+
			" The order of their times counts.\n", grouped(n), grouped(rep.Requests),
			plural(rep.Requests, "request", "requests"), plural(n, "is", "are"),
			durationText(time.Duration(rep.longestStep)))
	}
	if n := rep.Late; n > 0 {
		fmt.Fprintf(&notes, "%s %s too late for that, and decided after later requests%s.\n",
			grouped(n), plural(n, "is", "are"), ifAny(rep.LateRefused, ": %s of them refused"))
	}
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

// writeRemarks writes what is remarkable about a limiter, if any count is above 0.
func writeRemarks(
	b *strings.Builder, name string, never, inDebt uint64, forgiven float64, newly uint64,
) {
	tokens := uint64(math.Ceil(forgiven))
	b.WriteString(ifAny(never, name+" can never grant %s of the refused requests: their cost is above"+
		" the burst.\n") +
		ifAny(inDebt, name+" dropped %s "+plural(inDebt, "key", "keys")+" in debt from the full table"+
			ifAny(tokens, ", and forgave %s "+plural(tokens, "token", "tokens"))+".\n") +
		ifAny(newly, name+" refused %s "+plural(newly, "request", "requests")+
			" because the key was new and the table full.\n"))
}
