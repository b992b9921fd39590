package algorithm

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the picture and the table of docs/algorithms.md")

// docs has the guide, with a picture of all algorithms and a table of their numbers.
const docs = "../../../docs"

// scene is the burst at the edge of a window, and then a request every 100 ms, twice the rate.
func scene() (instants []uint64) {
	instants, edge := BurstAtEdge()
	for now := edge + second/5; now < 3*edge; now += second / 10 {
		instants = append(instants, now)
	}
	return instants
}

// run is the scene under one algorithm.
type run struct {
	name     string
	instants []uint64
	results  []Result
}

func runs(t *testing.T) (all []run) {
	t.Helper()
	for _, name := range Names {
		r := run{name: name, instants: scene()}
		var err error
		if r.results, err = Play(name, r.instants); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// grants returns the granted requests as they leave, a token each.
func (r *run) grants() (all []grant) {
	for i, result := range r.results {
		if result.Granted {
			all = append(all, grant{r.instants[i] + uint64(result.Delay), 1})
		}
	}
	return all
}

// title returns the name in words.
func (r *run) title() string {
	if r.name == "gcra" {
		return "GCRA"
	}
	text := strings.ReplaceAll(r.name, "-", " ")
	return strings.ToUpper(text[:1]) + text[1:]
}

var generated = regexp.MustCompile(`(?s)(<!-- generated: scene -->\n).*?(<!-- end -->)`)

// The picture and the table of the guide are what the algorithms do.
func TestGuideIsTrue(t *testing.T) {
	all := runs(t)
	picture := drawScene(all)
	guide, err := os.ReadFile(filepath.Join(docs, "algorithms.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !generated.Match(guide) {
		t.Fatal("docs/algorithms.md has no place for the table")
	}
	text := generated.ReplaceAll(guide, []byte("${1}"+markdown(t, all)+"${2}"))
	for name, want := range map[string][]byte{"algorithms.md": text, "algorithms.svg": picture} {
		name = filepath.Join(docs, name)
		if *update {
			if err := os.WriteFile(name, want, 0o644); err != nil {
				t.Fatal(err)
			}
		} else if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not up to date (%v): run go test ./internal/algorithm -update", name, err)
		}
	}
}

// markdown returns a table of the scene in Markdown.
func markdown(t *testing.T, all []run) string {
	l, err := NewLimit(Demo)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| | granted | most in 0.2 s | bound | most in 2 s | bound | longest delay |\n" +
		"|---|---:|---:|---:|---:|---:|---:|\n")
	for _, r := range all {
		grants := r.grants()
		var longest time.Duration
		for _, result := range r.results {
			longest = max(longest, result.Delay)
		}
		fmt.Fprintf(&b, "| %s | %d |", r.title(), len(grants))
		for _, d := range []time.Duration{l.Window() / 10, l.Window()} {
			bound := Bound(r.name, l, d)
			if r.name == "leaky-bucket" {
				bound++
			}
			fmt.Fprintf(&b, " %d | %.0f |", most(grants, uint64(d)), bound)
		}
		delay := "–"
		if longest > 0 {
			delay = fmt.Sprintf("%.1f s", longest.Seconds())
		}
		fmt.Fprintf(&b, " %s |\n", delay)
	}
	return b.String()
}
