package adapters

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAdaptersAreShort bounds the lines of code of each adapter, imports included.
func TestAdaptersAreShort(t *testing.T) {
	const most = 40
	names, err := filepath.Glob("*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	adapters := 0
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		adapters++
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			if line != "" && !strings.HasPrefix(line, "//") {
				n++
			}
		}
		if n > most {
			t.Errorf("%s has %d lines of code, want at most %d", name, n, most)
		}
	}
	if adapters < 6 {
		t.Errorf("%d adapters, want at least 6", adapters)
	}
}
