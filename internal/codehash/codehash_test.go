package codehash

import (
	"testing"
	"testing/fstest"
)

func TestHashIsOfNamesAndTokens(t *testing.T) {
	const code = "package lru\n\n// a comment\nfunc f() int { return 1 }\n"
	hashOf := func(name, text string) string {
		file := &fstest.MapFile{Data: []byte(text)}
		tree := fstest.MapFS{"lru/" + name: file, "lru/f_test.go": file, "tb/cas/f.go": file}
		h, err := Of(tree, "lru", "tb/cas")
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
		{"another name", "f.go", "package lru\n\n// a comment\nfunc g() int { return 1 }\n", false},
		{"another file", "g.go", code, false},
	} {
		if same := hashOf(c.name, c.text) == was; same != c.same {
			t.Errorf("%s: the hash is the same: %v", c.what, same)
		}
	}
	if _, err := Of(fstest.MapFS{}, "lru"); err == nil {
		t.Error("a hash of no files")
	}
}
