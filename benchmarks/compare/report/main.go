// Command report generates from the raw results of the benchmarks the tables that BENCHMARKS.md and
// README.md quote, and the charts and all tables beside the results.
//
// usage: report DIR, where DIR is the root of the repository, or
// report hits FILE prints the table of raw results of scripts/hits.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// The files in the root of the repository.
const (
	document   = "BENCHMARKS.md"
	readme     = "README.md"
	resultsDir = "benchmarks/results"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("report: ")
	var err error
	switch args := os.Args[1:]; {
	case len(args) == 1:
		err = write(args[0])
	case len(args) == 2 && args[0] == "hits":
		err = printHits(args[1])
	default:
		log.Fatal("usage: report DIR, or report hits FILE")
	}
	if err != nil {
		log.Fatal(err)
	}
}

func printHits(name string) error {
	raw, err := read(name)
	if err != nil {
		return err
	}
	text, err := hitsTable(raw)
	fmt.Print(text)
	return err
}

// write generates all files below dir.
func write(dir string) error {
	files, err := generate(dir)
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generate returns the files that are generated from the raw results, by name.
func generate(dir string) (map[string][]byte, error) {
	raw := make(map[string]*results)
	for _, name := range []string{bench, headline, onHits, inRedis} {
		var err error
		if raw[name], err = read(filepath.Join(dir, resultsDir, name)); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{bench, onHits} {
		raw[name].changes = changesSince(dir, raw[name].config("commit"))
	}
	files := make(map[string][]byte)
	for _, name := range []string{document, readme} {
		old, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		if files[name], err = fill(old, raw); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, c := range charts {
		drawing, err := c.svg(raw[c.file])
		if err != nil {
			return nil, fmt.Errorf("chart %s: %w", c.name, err)
		}
		files[c.path()] = drawing
	}
	var err error
	files[resultsDir+"/README.md"], err = page(raw)
	return files, err
}

// page returns all tables. BENCHMARKS.md explains them.
func page(raw map[string]*results) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("# Results\n\n" +
		"`scripts/report` generates this page from the raw results." +
		" [BENCHMARKS.md](../../BENCHMARKS.md) has the method.\n")
	for _, t := range texts {
		if t.title == "" {
			continue
		}
		table, err := t.of(raw[t.file])
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", t.name, err)
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s", t.title, table)
	}
	return b.Bytes(), nil
}

// marked is a quoted table or sentence: the text between the two comments.
var marked = regexp.MustCompile(`(?s)(<!-- generated: (\S+) -->\n).*?(<!-- end -->)`)

// fill replaces the texts that a document quotes. raw has the raw results by file.
func fill(old []byte, raw map[string]*results) ([]byte, error) {
	var failed []error
	filled := marked.ReplaceAllFunc(old, func(part []byte) []byte {
		m := marked.FindSubmatch(part)
		i := slices.IndexFunc(texts, func(t text) bool { return t.name == string(m[2]) })
		if i < 0 {
			failed = append(failed, fmt.Errorf("there is no table %q", m[2]))
			return nil
		}
		made, err := texts[i].of(raw[texts[i].file])
		failed = append(failed, err)
		return slices.Concat(m[1], []byte(made), m[3])
	})
	if len(failed) == 0 {
		return nil, errors.New("no table is quoted")
	}
	return filled, errors.Join(failed...)
}
