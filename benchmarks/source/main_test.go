package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

func TestResultsAreOfThisCode(t *testing.T) {
	now, err := hash("../..")
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

func TestHash(t *testing.T) {
	const code = "package lru\n\n// a comment\nfunc f() int { return 1 }\n"
	hashOf := func(name, text string) string {
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
		h, err := hash(dir)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	was := hashOf("f.go", code)
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
		if same := hashOf(c.name, c.text) == was; same != c.same {
			t.Errorf("%s: the hash is the same: %v", c.what, same)
		}
	}
	if _, err := hash(t.TempDir()); err == nil {
		t.Error("a hash of no files")
	}
}
