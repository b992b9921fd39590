package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"testing/fstest"
)

func TestHashIsOfNamesAndTokens(t *testing.T) {
	const code = "package lru\n\n// a comment\nfunc f() int { return 1 }\n"
	hash := func(name, text string) string {
		file := &fstest.MapFile{Data: []byte(text)}
		tree := fstest.MapFS{"lru/" + name: file, "lru/f_test.go": file, "tb/cas/f.go": file}
		h, err := hashOf(tree, "lru", "tb/cas")
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
		{"another name", "f.go", "package lru\n\n// a comment\nfunc g() int { return 1 }\n", false},
		{"another file", "g.go", code, false},
	} {
		if same := hash(c.name, c.text) == was; same != c.same {
			t.Errorf("%s: the hash is the same: %v", c.what, same)
		}
	}
	if _, err := hashOf(fstest.MapFS{}, "lru"); err == nil {
		t.Error("a hash of no files")
	}
}

func TestResultsAreOfThisCode(t *testing.T) {
	now, err := hashOf(os.DirFS("../.."), measured...)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bench.txt", "hits.txt"} {
		text, err := os.ReadFile(filepath.Join("../../benchmarks/results", name))
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
