// Command report makes the tables of BENCHMARKS.md and of the README, and the charts, from
// the raw results of the benchmarks.
//
// usage: report DIR, where DIR is the root of the repository.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"log"
	"maps"
	"os"
	"path/filepath"
	"regexp"
)

// What is read and written, in the root of the repository.
const (
	document   = "BENCHMARKS.md"
	readme     = "README.md"
	resultsDir = "benchmarks/results"
	rawResults = resultsDir + "/bench.txt"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("report: ")
	if len(os.Args) != 2 {
		log.Fatal("usage: report DIR")
	}
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

// generate returns the files that the raw results make, by name.
func generate(dir string) (map[string][]byte, error) {
	raw, err := read(filepath.Join(dir, rawResults))
	if err != nil {
		return nil, err
	}
	files, missing := make(map[string][]byte), maps.Clone(tables)
	for _, name := range []string{document, readme} {
		old, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		if files[name], err = fill(old, raw, missing); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	for name := range missing {
		return nil, fmt.Errorf("there is no place for table %s", name)
	}
	for _, c := range charts {
		if files[resultsDir+"/"+c.name+".svg"], err = c.svg(raw); err != nil {
			return nil, fmt.Errorf("chart %s: %w", c.name, err)
		}
	}
	return files, nil
}

// marked is a part of the document that is generated: what stands between the two lines.
var marked = regexp.MustCompile(`(?s)(<!-- generated: (\S+) -->\n).*?(<!-- end -->)`)

// fill puts the tables into the places of a document that are marked for them, and
// deletes them from missing.
func fill(text []byte, raw *results, missing map[string]spec) ([]byte, error) {
	var failed []error
	text = marked.ReplaceAllFunc(text, func(part []byte) []byte {
		m := marked.FindSubmatch(part)
		name := string(m[2])
		made, err := table(raw, name)
		if err != nil {
			failed = append(failed, fmt.Errorf("table %s: %w", name, err))
		}
		delete(missing, name)
		return bytes.Join([][]byte{m[1], []byte(made), m[3]}, nil)
	})
	return text, errors.Join(failed...)
}
