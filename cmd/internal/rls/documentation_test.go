package rls

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

func document(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/rls.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// This command accepts the arguments that it has in the configuration of Envoy Gateway.
func TestDocumentedManifests(t *testing.T) {
	var args []string
	arg := regexp.MustCompile(`(?m)^ +- (--\S+)$`)
	for _, m := range arg.FindAllSubmatch(example(t, "gateway.yaml"), -1) {
		args = append(args, string(m[1]))
	}
	if len(args) < 9 {
		t.Fatalf("%d arguments", len(args))
	}
	if _, err := parseFlags(t, args...); err != nil {
		t.Error(err)
	}
}

// example returns an example for Envoy.
func example(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("../../../packaging/envoy/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// docs/rls.md has all flags with their defaults.
func TestDocumentedFlags(t *testing.T) {
	rows := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(--[a-z-]+)` \\| ([^|]*) \\|").
		FindAllStringSubmatch(document(t), -1) {
		rows[m[1]] = strings.Trim(m[2], "`")
	}
	parser, err := kong.New(&Command{}, Vars)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range parser.Model.Flags {
		name, want := "--"+f.Name, f.Default
		switch {
		case f.Name == "help":
			continue
		case f.Required:
			want = "required"
		case f.IsBool():
			want = "off"
		case !f.HasDefault:
			want = "none"
		}
		if got, ok := rows[name]; !ok || got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		delete(rows, name)
	}
	for name := range rows {
		t.Errorf("%s is not a flag", name)
	}
}

// The table of metrics has exactly the metrics that are served.
func TestDocumentedMetrics(t *testing.T) {
	documented := map[string]string{}
	for line := range strings.Lines(document(t)) {
		if strings.HasPrefix(line, "| `tb_") {
			cells := strings.Split(line, "|")
			words := regexp.MustCompile("[a-z_]+").FindAllString(strings.Join(cells[1:3], "|"), -1)
			for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(cells[3], -1) {
				words = append(words, m[1])
			}
			slices.Sort(words[2:])
			documented[words[0]] = fmt.Sprint(words)
		}
	}
	s, _ := newService(t, limit("k", perMinute+"1"))
	families, err := newMetrics(s, func() uint64 { return 0 }).Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "tb_") {
			continue
		}
		words := []string{f.GetName(), strings.ToLower(f.GetType().String())}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				words = append(words, l.GetName())
				if !slices.Contains([]string{"domain", "set", "rule"}, l.GetName()) {
					words = append(words, l.GetValue())
				}
			}
		}
		slices.Sort(words[2:])
		words = append(words[:2], slices.Compact(words[2:])...)
		if got := documented[f.GetName()]; got != fmt.Sprint(words) {
			t.Errorf("docs/rls.md has %s, want %v", got, words)
		}
		delete(documented, f.GetName())
	}
	for name := range documented {
		t.Errorf("%s is not served", name)
	}
}
