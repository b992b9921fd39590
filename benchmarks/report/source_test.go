package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestResultsAreOfThisCode(t *testing.T) {
	now, err := sourceHash(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []run{inProcess, onHits} {
		raw, err := read(filepath.Join(root, resultsDir, r.text))
		if err != nil {
			t.Fatal(err)
		}
		if raw.config("source") == "" {
			t.Skipf("%s was measured before results named their source", r.text)
		}
		if of := raw.config("source"); of != now {
			t.Errorf("%s is of the source %s, commit %s, and %v are now %s: run scripts/bench",
				r.text, of, raw.config("commit"), measured, now)
		}
	}
}

func TestSourceHash(t *testing.T) {
	const code = "package lru\n\n// a comment\nfunc f() int { return 1 }\n"
	hash := func(name, text string) string {
		dir := t.TempDir()
		for _, pkg := range measured {
			if err := os.MkdirAll(filepath.Join(dir, pkg), 0o755); err != nil {
				t.Fatal(err)
			}
			for file, text := range map[string]string{name: text, "f_test.go": text} {
				if err := os.WriteFile(filepath.Join(dir, pkg, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		h, err := sourceHash(dir)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	was := hash("f.go", code)
	for _, c := range []struct {
		what, name, text string
		same             bool
	}{
		{"the same", "f.go", code, true},
		{"another comment", "f.go", "package lru\n\n\nfunc f() int { return 1 } // one\n", true},
		{"a directive", "f.go", "package lru\n\n//go:noinline\nfunc f() int { return 1 }\n", false},
		{"another number", "f.go", "package lru\n\n// a comment\nfunc f() int { return 2 }\n", false},
		{"another name", "f.go", "package lru\n\n// a comment\nfunc g() int { return 1 }\n", false},
		{"another file", "g.go", code, false},
	} {
		if same := hash(c.name, c.text) == was; same != c.same {
			t.Errorf("%s: the hash is the same: %v", c.what, same)
		}
	}
	if _, err := sourceHash(t.TempDir()); err == nil {
		t.Error("a hash of no files")
	}
}
