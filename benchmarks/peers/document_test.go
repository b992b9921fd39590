package peers

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// cell is a place in the table of docs/peers.md.
type cell struct{ subject, property string }

// document is what docs/peers.md says. The tests run all of it.
type document struct {
	verdicts map[cell]string
	traces   map[cell]trace
}

// trace is a sequence of calls on a new limiter, with their outcomes.
type trace struct {
	limit tb.Limit
	calls []call
}

type call struct {
	reading time.Duration
	key     string
	n       int
	want    outcome
	during  []call // made between this call's reading of the clock and its decision
}

// A heading such as "### throttled: C8 costs" names the cells that the trace below proves.
var (
	tableLine = regexp.MustCompile(`^\| (.*) \|$`)
	traceHead = regexp.MustCompile(`^### (.*): (C.*)$`)
	callLine  = regexp.MustCompile(`^( *)t = (\S+) +(?:(\w+): )?take (-?\d+) +(granted|refused)$`)
)

func readDocument(t *testing.T) document {
	text, err := os.ReadFile("../../docs/peers.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := document{make(map[cell]string), make(map[cell]trace)}
	table, rest, found := strings.Cut(string(text), "\n## ")
	if !found {
		t.Fatal("no section")
	}
	var columns []string
	for line := range strings.Lines(table) {
		m := tableLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		cells := strings.Split(m[1], " | ")
		if columns == nil {
			columns = cells
			continue
		}
		for i, verdict := range cells[1:] {
			doc.verdicts[cell{cells[0], columns[i+1]}] = verdict
		}
	}
	for _, section := range strings.Split(rest, "\n### ")[1:] {
		doc.addTraces(t, "### "+section)
	}
	return doc
}

func (doc document) addTraces(t *testing.T, section string) {
	head, rest, _ := strings.Cut(section, "\n")
	names := traceHead.FindStringSubmatch(head)
	_, rest, fenced := strings.Cut(rest, "```text\n")
	text, _, closed := strings.Cut(rest, "```")
	if names == nil || !fenced || !closed {
		t.Fatalf("no trace in the section %q", head)
	}
	for _, subject := range strings.Split(names[1], ", ") {
		for _, property := range strings.Split(names[2], ", ") {
			doc.traces[cell{subject, property}] = parseTrace(t, text)
		}
	}
}

func parseTrace(t *testing.T, text string) (tr trace) {
	first, rest, _ := strings.Cut(text, "\n")
	var per string
	_, err := fmt.Sscanf(first, "capacity %d, %d per %s", &tr.limit.Capacity, &tr.limit.Tokens, &per)
	tr.limit.Per = map[string]time.Duration{"second": time.Second, "hour": time.Hour}[per]
	if err != nil || tr.limit.Per == 0 {
		t.Fatalf("not a limit: %q", first)
	}
	for line := range strings.Lines(rest) {
		m := callLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			t.Fatalf("not a call: %q", line)
		}
		reading, errTime := time.ParseDuration(m[2])
		n, errCost := strconv.ParseInt(m[4], 10, 64)
		if errTime != nil || errCost != nil {
			t.Fatalf("%q: %v, %v", line, errTime, errCost)
		}
		c := call{reading: reading, key: m[3], n: int(n), want: outcome(m[5])}
		calls := &tr.calls
		if m[1] != "" {
			calls = &tr.calls[len(tr.calls)-1].during
		}
		*calls = append(*calls, c)
	}
	return tr
}
