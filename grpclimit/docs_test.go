package grpclimit

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Each Go snippet of docs/grpc.md is part of an example that go test runs, and each JSON block is a
// policy for calls without a warning.
func TestSnippetsOfTheDocument(t *testing.T) {
	document, err := os.ReadFile("../docs/grpc.md")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	words := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	counts := map[string]int{}
	for _, m := range regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$").FindAllStringSubmatch(
		string(document), -1) {
		counts[m[1]]++
		switch text := m[2]; m[1] {
		case "go":
			if !strings.Contains(words(string(examples)), words(text)) {
				t.Errorf("no example has this code:\n%s", text)
			}
		case "json":
			p := mustParse(t, text)
			if _, err := New(p); err != nil || len(p.Warnings()) > 0 {
				t.Errorf("%v %v\n%s", err, p.Warnings(), text)
			}
		}
	}
	if counts["go"] != 2 || counts["json"] != 1 {
		t.Errorf("the document has %v blocks, want 2 of Go and 1 of JSON", counts)
	}
}
