package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The quotients are of the times of the same round, also if the machine was slower in one, and a
// round without one of the times does not count.
func TestHitsComparesRounds(t *testing.T) {
	const raw = `base: f5b47fa
round: 1
side: base
BenchmarkHits/impl=cas/load=grant/keys=1/dist=uniform/par=1-2 100 40 ns/op
round: 1
side: now
BenchmarkHits/impl=floor/load=grant/keys=1/dist=uniform/par=1-2 100 40 ns/op
BenchmarkHits/impl=cas/load=grant/keys=1/dist=uniform/par=1-2 100 44 ns/op
round: 2
side: now
BenchmarkHits/impl=floor/load=grant/keys=1/dist=uniform/par=1-2 100 80 ns/op
BenchmarkHits/impl=cas/load=grant/keys=1/dist=uniform/par=1-2 100 96 ns/op
round: 2
side: base
BenchmarkHits/impl=cas/load=grant/keys=1/dist=uniform/par=1-2 100 80 ns/op
round: 3
side: now
BenchmarkHits/impl=cas/load=grant/keys=1/dist=uniform/par=1-2 100 50 ns/op
`
	file := filepath.Join(t.TempDir(), "hits.txt")
	if err := os.WriteFile(file, []byte(raw), 0o644); err != nil {
		t.Fatal(err)
	}
	read, err := read(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := hitsTable(read)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{
		"| ns | now | f5b47fa | floor | now / f5b47fa | now / floor | at most |",
		"| grant, one key | 50.0 | 60.0 | 60.0 | 1.15 | 1.15 | 1.10 |",
		"| refuse, one key | – | – | – | – | – | 1.22 |",
	} {
		if !strings.Contains(text, row+"\n") {
			t.Errorf("the table lacks the row %s:\n%s", row, text)
		}
	}
}
