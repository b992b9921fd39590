package ratelimit_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Every Go snippet of the README is code that is compiled: a part of an example, or, for
// the block of signatures, line by line the source of the packages.
func TestReadmeSnippetsAreCode(t *testing.T) {
	var sources strings.Builder
	for _, name := range []string{
		"example_test.go", "tb/limit.go", "tb/decision.go", "tb/option.go",
		"tb/cas/limiter.go", "tb/cas/bucket.go",
	} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sources.Write(b)
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	code := strings.Join(strings.Fields(sources.String()), " ")
	snippets := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(readme, -1)
	if len(snippets) < 3 {
		t.Fatalf("%d Go snippets in the README", len(snippets))
	}
	for _, s := range snippets {
		text := string(s[1])
		parts := []string{text}
		if strings.Contains(text, "package ") { // the block of signatures
			parts = strings.Split(text, "\n")
		}
		for _, p := range parts {
			if len(parts) > 1 {
				p, _, _ = strings.Cut(p, " //")
			}
			p = strings.Join(strings.Fields(p), " ")
			if !strings.HasPrefix(p, "package ") && !strings.Contains(code, p) {
				t.Errorf("not in the sources: %s", p)
			}
		}
	}
}
