package replay

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// file writes a log and returns it as an input.
func file(t *testing.T, name, log string) Input {
	t.Helper()
	name = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(name, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	return Input{name, func() (io.ReadCloser, error) { return os.Open(name) }}
}

// outcome returns all of a report but the names of the inputs.
func outcome(t *testing.T, rep *Report) string {
	t.Helper()
	rep.Files = nil
	b, err := json.Marshal(rep)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Files that overlap or follow each other have the report of one sorted file, in any order of the
// files.
func TestFilesAreMergedByTime(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		parts := make([]string, 2+rng.IntN(5))
		var all string
		rotates := rng.IntN(2) == 0
		for second := range 400 {
			one := line(fmt.Sprint("client", rng.IntN(20)), second, 1)
			all += one
			part := rng.IntN(len(parts))
			if rotates {
				part = second * len(parts) / 400
			}
			parts[part] += one
		}
		want := outcome(t, replay(t, options(t, "1/m", 3), input("all", all)))
		var inputs []Input
		for i, part := range parts {
			inputs = append(inputs, input(fmt.Sprint(i), part))
		}
		rng.Shuffle(len(inputs), func(i, j int) { inputs[i], inputs[j] = inputs[j], inputs[i] })
		rep := replay(t, options(t, "1/m", 3), inputs...)
		if got := outcome(t, rep); got != want {
			t.Fatalf("%d files merged:\n%s\none file:\n%s", len(parts), got, want)
		}
		for i, f := range rep.Files {
			if f.Name != inputs[i].Name {
				t.Errorf("file %d of the report is %s, want %s", i, f.Name, inputs[i].Name)
			}
		}
	}
}

// A log of files that follow each other in the wrong order has no answer, and the files merged have
// the one of the sorted log. A few lines that are too late are left out, which the first line says.
func TestNoAnswerFromAWrongOrder(t *testing.T) {
	var older, newer strings.Builder
	for i := range queueRequests + 4000 {
		part := &newer
		if i < 2000 {
			part = &older
		}
		part.WriteString(line(fmt.Sprint("a", i%20), i/20, 1))
	}
	const all = queueRequests + 4000
	policy, err := policyOptions(t, `{"name": "a", "limit_keys": ["ip:address"],
		"algorithm_config": {"tokens_per_second": 0.01, "burst": 5}}`)
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]Options{
		"limit": options(t, "0.01", 5), "suggestion": suggestOptions(t, "1%", ""), "policy": policy,
	} {
		res, err := Run(t.Context(), o, []Input{input("all.log", newer.String()+older.String())})
		rep := res
		var page strings.Builder
		if err := res.WriteHTML(&page); err != nil {
			t.Fatal(err)
		}
		const why = "The log is not in the order of time."
		if err == nil || !strings.Contains(err.Error(), "tb replay access.log*") || rep.Requests != 0 ||
			rep.NoAnswer != why || !strings.HasPrefix(rendered(t, rep), why) ||
			!strings.Contains(page.String(), why) || rep.Limit != nil || rep.Policy != nil {
			t.Errorf("%s: %v, %+v", name, err, rep)
		}
		sorted := replay(t, o, input("all.log", older.String()+newer.String()))
		merged := replay(t, o, input("b", newer.String()), input("a", older.String()))
		if outcome(t, sorted) != outcome(t, merged) || sorted.Requests != all {
			t.Errorf("%s: merged %s, sorted %s", name, outcome(t, merged), outcome(t, sorted))
		}
		late := older.String() + newer.String() + line("late", 1, 1)
		res, err = Run(t.Context(), o, []Input{input("all.log", late)})
		if got := rendered(t, res); err == nil || res.Requests != all ||
			res.Files[0].Late != 1 || !strings.HasPrefix(got,
			"CAUTION: all.log: 1 of 135,073 lines come too late") {
			t.Errorf("%s: %v in\n%s", name, err, got)
		}
	}
}
