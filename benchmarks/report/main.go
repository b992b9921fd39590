// Command report generates the tables and charts of the benchmarks from their raw results:
// benchmarks/results/tables.md and redis.md, the charts next to them, and the tables that
// BENCHMARKS.md and README.md quote.
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
	all, err := readAll(dir)
	if err != nil {
		return nil, err
	}
	files := make(map[string][]byte)
	for _, name := range []string{document, readme} {
		old, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		if files[name], err = fill(old, all.table); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, r := range all {
		if r.listing == "" {
			continue
		}
		if files[resultsDir+"/"+r.listing], err = r.everyTable(); err != nil {
			return nil, err
		}
		for _, c := range r.charts {
			if files[resultsDir+"/"+c.name+".svg"], err = c.svg(r.raw); err != nil {
				return nil, fmt.Errorf("chart %s: %w", c.name, err)
			}
		}
	}
	return files, nil
}

// marked is a quoted table: the text between the two comments.
var marked = regexp.MustCompile(`(?s)(<!-- generated: (\S+) -->\n).*?(<!-- end -->)`)

// fill replaces the quoted tables of a document.
func fill(text []byte, table func(name string) (string, error)) ([]byte, error) {
	var failed []error
	text = marked.ReplaceAllFunc(text, func(part []byte) []byte {
		m := marked.FindSubmatch(part)
		made, err := table(string(m[2]))
		failed = append(failed, err)
		return bytes.Join([][]byte{m[1], []byte(made), m[3]}, nil)
	})
	if len(failed) == 0 {
		return nil, errors.New("no table is quoted")
	}
	return text, errors.Join(failed...)
}
