package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/seed-181794aa/ratelimit/internal/codehash"
)

func TestResultsAreOfThisCode(t *testing.T) {
	now, err := codehash.Of(os.DirFS("../.."), measured...)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bench.txt", "hits.txt"} {
		text, err := os.ReadFile(filepath.Join("../results", name))
		if err != nil {
			t.Fatal(err)
		}
		was := regexp.MustCompile(`(?m)^source: (.*)$`).FindSubmatch(text)
		if was == nil || string(was[1]) != now {
			t.Errorf("%s was measured on other code: %v have changed since; run scripts/bench",
				name, measured)
		}
	}
}
