package codehash

import (
	"os"
	"path/filepath"
	"testing"
)

func TestHashIsOfNamesAndTokens(t *testing.T) {
	const code = "package lru\n\n// a comment\nfunc f() int { return 1 }\n"
	hashOf := func(name, text string) string {
		dir := t.TempDir()
		for _, pkg := range []string{"lru", "tb/cas"} {
			if err := os.MkdirAll(filepath.Join(dir, pkg), 0o755); err != nil {
				t.Fatal(err)
			}
			for file, text := range map[string]string{name: text, "f_test.go": text} {
				if err := os.WriteFile(filepath.Join(dir, pkg, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		h, err := Of(dir, "lru", "tb/cas")
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
	if _, err := Of(t.TempDir(), "lru"); err == nil {
		t.Error("a hash of no files")
	}
}
