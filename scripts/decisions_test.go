package scripts

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// A run begins behind the programs of the runs before it, but a range that fails is run again. A
// line counts for as long as the code that tb/cas and tb/mutex link is the same.
func TestDecisionsContinueTheLedger(t *testing.T) {
	tree, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	r := newRepository(t, "clone", "-q", tree).with("PROGRAMS=999", "GOFLAGS=-trimpath")
	const ledger = "fuzz/decisions.tsv"
	header, _, _ := strings.Cut(r.run("cat", ledger), "\n")
	r.write(ledger, header+"\n")

	begin := map[string]int{} // by test
	runs := func(want string) (decisions int) {
		t.Helper()
		before := r.run("cat", ledger)
		out, err := r.try("scripts/decisions", "1s")
		if (err == nil) != (want == "ok") {
			t.Fatalf("error %v, want the result %s\n%s", err, want, out)
		}
		lines := strings.Split(r.run("cat", ledger)[len(before)+1:], "\n")
		for _, line := range lines {
			f := strings.Split(line, "\t")
			first, _ := strconv.Atoi(f[4])
			last, _ := strconv.Atoi(f[5])
			n, _ := strconv.Atoi(f[7])
			if first != begin[f[3]] || f[6] != strconv.Itoa(last-first+1) || f[9] != want {
				t.Errorf("%q, want the first seed %d, and the result %s", f, begin[f[3]], want)
			}
			begin[f[3]], decisions = last+1, decisions+n
		}
		if want == "ok" && (len(lines) != 4 || decisions == 0) {
			t.Errorf("%q, want decisions of four tests", lines)
		}
		return decisions
	}
	sums := func(want int) {
		t.Helper()
		out := r.run("scripts/decisions", "0s")
		last := out[strings.LastIndex(out, "\n")+1:]
		if !strings.HasPrefix(last, strconv.Itoa(want)+" decisions of the present code") {
			t.Errorf("%q, want %d decisions", last, want)
		}
	}
	sum := runs("ok")
	r.write("fuzz/fail_test.go", "package fuzz\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\n"+
		"func TestMain(m *testing.M) { os.Exit(m.Run() + 1) }\n")
	if out, err := r.try("scripts/decisions", "1s"); !strings.Contains(out, "commit them first") {
		t.Errorf("error %v with a change of code that is not committed:\n%s", err, out)
	}
	r.commit()
	runs("failed")
	r.run("git", "rm", "-q", "fuzz/fail_test.go")
	r.commit()
	sum += runs("ok")
	r.write("tb/cas/doc.go", "// A comment.\n\n"+r.run("cat", "tb/cas/doc.go")+"\n").commit()
	sums(sum)
	r.write("tb/cas/doc.go", r.run("cat", "tb/cas/doc.go")+"\n\nvar more int\n").commit()
	sums(0)
}
