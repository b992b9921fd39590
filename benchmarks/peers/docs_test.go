package peers

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write "+document)

const document = "../../docs/peers.md"

// TestDocument checks that the document says what the tests expect.
func TestDocument(t *testing.T) {
	want := render(t)
	if *update {
		if err := os.WriteFile(document, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not up to date: go test -run TestDocument -update", document)
	}
}

const head = `<!-- Written by go test -run TestDocument -update, in benchmarks/peers. -->

# Other limiters under the same contract

What other Go limiters do with the [contract of package tb](../tb/doc.go). Most of them never
promised it. The table says what happens, and below it are the calls that show it. None of this
is about how good a limiter is at what it says it is: a counter of windows is not a broken bucket.

Everything here is checked by

    go test ./benchmarks/peers

which fails if a limiter breaks what the table says it keeps, or keeps what it does not. Time is
that of ` + "`testing/synctest`" + `, or is told to the limiter where it can be.

- **keeps**: the check found nothing. It is the same for all, tb/cas and tb/mutex included.
- **breaks**: it does otherwise, although its documentation gives reason to expect this.
- **no claim**: it does otherwise, and its documentation says so or says nothing about it.
- *The rest* does not apply. No keys: there is one bucket. No bound: nothing is evicted. No costs:
  each call takes one. No wait: a refusal does not say how long. Waits: it blocks instead of
  refusing. Own clock: it reads the clock itself, and a clock that goes back cannot be faked.
  Windows: it has no rate but a count per window.

A limiter that counts in windows gets the capacity for each window in which the rate would refill
it: 2 seconds for a capacity of 10 at 5 a second, 10 hours at 1 an hour. The column of late
readings allows juju/ratelimit the one token that the first column shows.

`

func render(t *testing.T) string {
	var b strings.Builder
	b.WriteString(head)
	b.WriteString("| |")
	for _, p := range properties {
		fmt.Fprintf(&b, " [%s](#%s) |", p.name, anchor(p.name))
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(properties)) + "\n")
	for _, s := range subjects {
		fmt.Fprintf(&b, "| %s |", s.name)
		for _, p := range properties {
			fmt.Fprintf(&b, " %s |", expected[s.name][p.name].mark())
		}
		b.WriteByte('\n')
	}
	b.WriteString("\n## What is called\n\n| | module | by |\n|---|---|---|\n")
	for _, s := range subjects {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", s.name, version(t, s.module), s.how)
	}
	for _, p := range properties {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", p.name, wrap(p.asks))
		p.renderCells(&b)
	}
	return b.String()
}

// renderCells writes what the limiters do that do not keep the property, once for all
// that do the same.
func (p property) renderCells(b *strings.Builder) {
	done := map[string]bool{}
	for i, s := range subjects {
		c := expected[s.name][p.name]
		if c.why == "" || !c.applies() || done[c.key()] {
			continue
		}
		done[c.key()] = true
		names := s.name
		for _, other := range subjects[i+1:] {
			if expected[other.name][p.name].key() == c.key() {
				names += ", " + other.name
			}
		}
		fmt.Fprintf(b, "\n%s\n", wrap("**"+names+"**: "+cmp.Or(c.verdict, "keeps")+". "+c.why))
		if c.script != nil {
			fmt.Fprintf(b, "\n```text\n%s```\n", c.script)
		}
	}
}

func (c cell) key() string {
	if c.script == nil {
		return c.why
	}
	return c.why + c.script.String()
}

// mark is the cell in the table.
func (c cell) mark() string {
	switch {
	case c.verdict == breaks:
		return "**" + breaks + "**"
	case c.applies():
		return cmp.Or(c.verdict, "keeps")
	}
	return "*" + c.verdict + "*"
}

// anchor is how the heading is linked to.
func anchor(heading string) string {
	return strings.NewReplacer(" ", "-", ",", "").Replace(strings.ToLower(heading))
}

// wrap breaks a paragraph into lines.
func wrap(text string) string {
	var b strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		if column+len(word) >= 98 {
			b.WriteByte('\n')
			column = 0
		} else if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(word)
		column += len(word) + 1
	}
	return b.String()
}

// version is that of a module in go.mod.
func version(t *testing.T, module string) string {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if module == "" {
		return "this one"
	}
	_, after, found := strings.Cut(string(mod), "\t"+module+" ")
	if !found {
		t.Fatalf("%s is not in go.mod", module)
	}
	v, _, _ := strings.Cut(after, "\n")
	return module + " " + v
}
