package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/tb"
)

// What envoyproxy/ratelimit reads means the same here. What has no effect has a warning.
func TestForms(t *testing.T) { checkForms(t, "testdata/forms.txt") }

// An error names the file and the line.
func TestErrors(t *testing.T) { checkForms(t, "testdata/errors.txt") }

func checkForms(t *testing.T, name string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range strings.Split(string(text), "\n\n")[1:] {
		form, want, _ := strings.Cut(form, "\n=>")
		c, err := Parse([]File{{"f", form}}, false)
		got := ""
		for _, r := range c.Rules {
			got += fmt.Sprintf("\n=> %s.%s: %d %s", r.Domain, r.Path, r.RequestsPerUnit, r.Unit)
			for mode, is := range map[string]bool{" shadow": r.Shadow, " quota": r.Quota} {
				if is {
					got += mode
				}
			}
		}
		for _, w := range c.Warnings {
			got += "\n=> " + w
		}
		got = strings.ReplaceAll(got, "0 UNKNOWN", "unlimited")
		if _, problem, isError := strings.Cut(want, " error: "); isError {
			if err == nil || !strings.Contains(err.Error(), strings.TrimSpace(problem)) {
				t.Errorf("%s\n%v, want %s", form, err, problem)
			}
		} else if err != nil || got != strings.TrimRight("\n=>"+want, "\n=>") {
			t.Errorf("%s\n%v%s\nwant\n=>%s", form, err, got, want)
		}
	}
}

// All errors of all files are reported at once.
func TestErrorsAreJoined(t *testing.T) {
	_, err := Parse([]File{
		{"a.yaml", "domain: d\ndescriptors: [{key: }, {key: k, rate_limit: {unit: x}}]"},
		{"b.yaml", "domain: d\nbad: 1"}, {"c.yaml", "domain: d"},
	}, false)
	want := "a.yaml:2: want a key\n" +
		"a.yaml:2: unit \"x\": want second, minute, hour, day, week, month or year\n" +
		"b.yaml:2: field bad is unknown\n" +
		"c.yaml:1: domain \"d\" is in another file, too"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want\n%s", err, want)
	}
}

func TestMergedDomains(t *testing.T) {
	a := File{"a.yaml", "domain: d\ndescriptors: [{key: a, rate_limit: {unit: day}}]"}
	b := File{"b.yaml", strings.Replace(a.Text, "key: a", "key: b", 1)}
	c, err := Parse([]File{a, b}, true)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Rules) != 2 || find(c, "d", "a", "") != "a" || find(c, "d", "b", "") != "b" {
		t.Errorf("%d rules", len(c.Rules))
	}
	a.Name = "c.yaml"
	if _, err := Parse([]File{a, b, a}, true); err == nil ||
		!strings.Contains(err.Error(), "c.yaml:2: a is already defined at c.yaml:2") {
		t.Error(err)
	}
}

// Aliases cannot make a small file large, neither in metadata nor as descriptors.
func TestAliases(t *testing.T) {
	for _, field := range []string{"metadata: {m: ", "descriptors: [{key: l, descriptors: "} {
		bomb := "domain: d\ndescriptors:\n- key: k\n  metadata:\n    x0: &x0 [{key: k}]\n"
		for i := range 40 {
			bomb += fmt.Sprintf("    x%d: &x%[1]d [{key: a, descriptors: *x%[2]d},"+
				" {key: b, descriptors: *x%[2]d}]\n", i+1, i)
		}
		bomb += "- {key: l, " + field + "*x40}}"
		if _, err := Parse([]File{{"f.yaml", bomb}}, false); err == nil {
			t.Error("a bomb of aliases was accepted")
		}
	}
}

// FuzzParse checks that no text makes Parse panic, and that the rules that it returns are sound.
func FuzzParse(f *testing.F) {
	f.Add(tree)
	names, _ := filepath.Glob("testdata/*.yaml")
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse([]File{{"f.yaml", text}}, true)
		if err != nil {
			return
		}
		for _, r := range c.Rules {
			if r.Limit != (tb.Limit{}) && r.Limit.Validate() != nil {
				t.Errorf("%s: %v", r.Path, r.Limit)
			}
			var pairs []string
			for _, l := range r.levels {
				pairs = append(pairs, l.key, strings.ReplaceAll(l.text, "*", ""))
			}
			all := entries(pairs...)
			if got := c.Domain(r.Domain).Match(all); got == nil && !strings.Contains(r.Path, "*") {
				t.Errorf("%s does not match %q", r.Path, pairs)
			} else if got != nil {
				got.Key(all, nil)
			}
		}
	})
}
