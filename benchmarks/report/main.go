// Command report generates the tables and charts of the benchmarks from their raw results:
// benchmarks/results/tables.md and redis.md, the charts next to them, and the tables that
// BENCHMARKS.md and README.md quote. It also runs the simulation of adaptive limits, and
// generates the tables and charts of docs/adaptive.md.
//
// usage: report DIR, where DIR is the root of the repository, or report hits FILE, which prints the
// table of the raw results of scripts/hits.
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
	if len(os.Args) == 3 && os.Args[1] == "hits" {
		raw, err := read(os.Args[2])
		if err != nil {
			log.Fatal(err)
		}
		text, err := hitsTable(raw)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(text)
		return
	}
	if len(os.Args) != 2 {
		log.Fatal("usage: report DIR, or report hits FILE")
	}
	for _, generate := range []func(string) (map[string][]byte, error){generate, generateGuide} {
		files, err := generate(os.Args[1])
		if err != nil {
			log.Fatal(err)
		}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(os.Args[1], name), text, 0o644); err != nil {
				log.Fatal(err)
			}
		}
	}
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
