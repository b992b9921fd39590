package scripts

import (
	"strconv"
	"strings"
	"testing"
)

// A run begins behind the programs of the runs before it, but a range that fails is run again. A
// line counts for as long as the code that tb/cas and tb/mutex link is the same.
func TestDecisionsContinueTheLedger(t *testing.T) {
	r := newRepository(t, `git clone -q "$tree" .`)
	run := func(time string) (string, error) {
		return r.try("PROGRAMS=999 GOFLAGS=-trimpath scripts/decisions " + time)
	}
	results := func(want string) {
		t.Helper()
		_, err := run("1s")
		got := r.run("tail -n +2 fuzz/decisions.tsv | cut -f 10 | paste -sd ' '")
		if (err == nil) != strings.HasSuffix(want, "ok") || got != want {
			t.Errorf("error %v, results %q, want %q", err, got, want)
		}
	}
	const ok, failed = "ok ok ok ok", "failed failed failed failed"
	r.run("sed -i '2,$d' fuzz/decisions.tsv")
	results(ok)
	r.run("printf 'package fuzz\nimport (\"os\"; \"testing\")\n" +
		"func TestMain(m *testing.M) { os.Exit(m.Run() + 1) }' >fuzz/fail_test.go")
	if out, err := run("1s"); !strings.Contains(out, "commit them first") {
		t.Errorf("error %v with a change of code that is not committed:\n%s", err, out)
	}
	r.commit("")
	results(ok + " " + failed)
	r.commit("git rm -q fuzz/fail_test.go")
	results(ok + " " + failed + " " + ok)

	begin, sum := map[string]int{}, 0 // the next seed of each test, and all decisions
	for line := range strings.Lines(r.run("tail -n +2 fuzz/decisions.tsv")) {
		f := strings.Split(line, "\t")
		first, _ := strconv.Atoi(f[4])
		last, _ := strconv.Atoi(f[5])
		n, _ := strconv.Atoi(f[7])
		if first != begin[f[3]] || f[6] != strconv.Itoa(last-first+1) || (n > 0) != (last >= first) {
			t.Errorf("%q, want the first seed %d", f, begin[f[3]])
		}
		begin[f[3]], sum = last+1, sum+n
	}
	for _, change := range []struct {
		line string
		sum  int
	}{{"// A comment.", sum}, {"var more int", 0}} {
		r.commit("echo '" + change.line + "' >>tb/cas/doc.go")
		want := "\n" + strconv.Itoa(change.sum) + " decisions of the present code"
		if out, err := run("0s"); err != nil || !strings.Contains("\n"+out, want) {
			t.Errorf("after %s: %v, want%s\n%s", change.line, err, want, out)
		}
	}
}
