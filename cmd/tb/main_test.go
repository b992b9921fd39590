package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
	"github.com/seed-181794aa/ratelimit/cmd/internal/replay"
	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

const validLine = `1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1` + "\n"

// laterLine is a request of the same client a day later: a suggestion needs a log of some time.
const laterLine = `1.2.3.4 - - [18/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1` + "\n"

// tb runs the command.
func tb(t *testing.T, stdin string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = program.Run(t.Context(), args, cli.IO{
		Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs,
	})
	return status, out.String(), errs.String()
}

func zipped(t *testing.T, content string) string {
	t.Helper()
	var b strings.Builder
	w := gzip.NewWriter(&b)
	io.WriteString(w, content)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestInputErrors(t *testing.T) {
	good := testkit.File(t, "good.log", validLine)
	bad := testkit.File(t, "bad.log", "one\ntwo\n")
	for _, tt := range []struct {
		name, want string
		files      []string
		report     bool // on the files before
	}{
		{"no such file", "none.log", []string{good, filepath.Join(t.TempDir(), "none.log")}, false},
		{"no valid line", "bad.log: no valid line in 2", []string{good, bad}, true},
		{"empty", "empty.log: the log is empty", []string{testkit.File(t, "empty.log", "")}, false},
		{"directory", "is a directory", []string{t.TempDir()}, false},
		{"broken gzip", "broken.gz: ", []string{testkit.File(t, "broken.gz", "\x1f\x8b\x00\x00")}, false},
	} {
		args := append([]string{"replay", "--rate=5", "--burst=1"}, tt.files...)
		status, stdout, stderr := tb(t, "", args...)
		if status != 1 || !strings.Contains(stderr, tt.want) || (stdout != "") != tt.report {
			t.Errorf("%s: status %d, stdout %q, stderr %q", tt.name, status, stdout, stderr)
		}
	}
}

// A bad file does not keep the next files from being replayed.
func TestBadFilesDoNotHideTheRest(t *testing.T) {
	var good []string
	for range 3 {
		good = append(good, testkit.File(t, "good.log", validLine))
	}
	bad := []string{
		testkit.File(t, "text.log", "one\n"), t.TempDir(),
		testkit.File(t, "broken.gz", "\x1f\x8b\x00\x00"),
	}
	args := []string{"replay", "--rate=5", "--burst=1",
		good[0], bad[0], good[1], bad[1], bad[2], good[2]}
	status, stdout, stderr := tb(t, "", args...)
	if status != 1 || !strings.Contains(stdout, " of 3 requests ") ||
		!strings.Contains(stdout, "good.log and 4 more: 4 lines, common, 1 malformed.\n") {
		t.Errorf("status %d, stdout %q", status, stdout)
	}
	for _, name := range bad {
		if !strings.Contains(stderr, "tb: "+name+": ") {
			t.Errorf("%s is not in %q", name, stderr)
		}
	}
}

// A wrong name would put all requests into one bucket. The report is printed nevertheless.
func TestNameThatNoRequestHasIsAnError(t *testing.T) {
	log := `{"ts":1431857103,"ip":"1.2.3.4","status":200}` + "\n" +
		`{"ts":1431857103,"status":200,"once":1,"user":"u"}`
	for _, tt := range []struct{ flag, log, want string }{
		{"--key=ip,tenant", log, "no request has tenant, which is in --key"},
		{"--key=host", log, "no request has host, which is in --key"},
		{"--key=ip", `{"ts":1431857103,"remoteAddr":"192.0.2.7","path":"/"}`,
			"no request has ip, which is in --key; an object has [\"ts\",\"remoteAddr\",\"path\"]:" +
				" --field ip=NAME"},
		{"--key=once,user", log, ""},
	} {
		status, stdout, stderr := tb(t, tt.log, "replay", "--rate=5", "--burst=1", tt.flag, "-")
		if (status == 1) != (tt.want != "") || !strings.Contains(stderr, tt.want) ||
			!strings.Contains(stdout, "It refuses ") {
			t.Errorf("%s: status %d, stdout %q, stderr %q", tt.flag, status, stdout, stderr)
		}
	}
}

// Names of files and keys cannot control a terminal, in any output.
func TestOutputEscapesControls(t *testing.T) {
	const hostile = "a\u009b2J\x7f\u202e\u2066"
	line := strings.Replace(validLine, "- -", "- "+hostile, 1)
	name := testkit.File(t, hostile+".log", strings.Repeat(line, 3))
	args := []string{"replay", "--rate=1/d", "--burst=1", "--key=user", name}
	_, text, _ := tb(t, "", args...)
	_, json, _ := tb(t, "", append(args, "--json")...)
	_, _, missing := tb(t, "", append(args, hostile)...)
	_, _, usage := tb(t, "", "replay", "--"+hostile)
	_, check, _ := tb(t, "", "policy", "check", name)
	for _, out := range []string{text, json, missing, usage, check} {
		if strings.ContainsAny(out, "\u009b\x7f\u202e\u2066") || !strings.Contains(out, `\u202e`) {
			t.Errorf("%q", out)
		}
	}
	if rep := report(t, "", args[1:]...); rep.Files[0].Name != name || rep.Top[0].Key[0] != hostile {
		t.Errorf("%+v", rep)
	}
}

// report replays with --json.
func report(t *testing.T, stdin string, args ...string) (rep replay.Report) {
	t.Helper()
	status, stdout, stderr := tb(t, stdin, append([]string{"replay", "--json"}, args...)...)
	if status != 0 {
		t.Fatalf("%v: status %d: %s", args, status, stderr)
	}
	dec := json.NewDecoder(strings.NewReader(stdout))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&rep); err != nil {
		t.Fatalf("%v: %v in %s", args, err, stdout)
	}
	return rep
}

func TestSourcesOfALog(t *testing.T) {
	plain := testkit.File(t, "a.log", validLine+validLine)
	gz := testkit.File(t, "a.log.gz", zipped(t, validLine))
	jsonLog := testkit.File(t, "a.json", `{"ts":1431857103,"ip":"1.2.3.4","method":"GET"}`)
	for _, tt := range []struct {
		name, stdin string
		files       []string
		requests    uint64
	}{
		{"file", "", []string{plain}, 2},
		{"gzip", "", []string{gz}, 1},
		{"stdin", validLine, []string{"-"}, 1},
		{"gzip on stdin", zipped(t, validLine), []string{"-"}, 1},
		{"several, of several formats", validLine, []string{plain, gz, "-", jsonLog}, 5},
	} {
		rep := report(t, tt.stdin, append([]string{"--rate=1/d", "--burst=1"}, tt.files...)...)
		if rep.Requests != tt.requests || rep.Keys != 1 || rep.Limit.Granted != 1 ||
			len(rep.Files) != len(tt.files) {
			t.Errorf("%s: %+v", tt.name, rep)
		}
	}
}

func TestFlagsReachTheReplay(t *testing.T) {
	const log = `
{"when":1431857103,"ip":"2001:db8:0:1::1","t":"x","path":"/","v":0,"host":"h","via":"1.2.3.4"}
{"when":1431857103,"ip":"2001:db8:0:2::1","t":"y","path":"/","v":0,"host":"h"}
{"when":1431857103,"ip":"2001:db8:1:2::1","t":"x","path":"/","v":0,"host":"h","via":"1.2.3.4"}`
	base := []string{"--rate=1/d", "--field=time=when", "-"}
	for _, tt := range []struct {
		flags                  []string
		keys, refused, evicted uint64
	}{
		{[]string{"--burst=1"}, 3, 0, 0},
		{[]string{"--burst=1", "--ipv6-prefix=48"}, 2, 1, 0},
		{[]string{"--burst=1", "--field=forwarded=via"}, 3, 0, 0},
		{[]string{"--burst=1", "--field=forwarded=via", "--trusted-proxies=2001:db8::/32"},
			2, 1, 0},
		{[]string{"--burst=1", "--key=t"}, 2, 1, 0},
		{[]string{"--burst=1", "--key=t", "--key", "ip"}, 3, 0, 0},
		{[]string{"--burst=1", "--key=t,v"}, 2, 1, 0},
		{[]string{"--burst=2", "--key=host"}, 1, 1, 0},
		{[]string{"--burst=1", "--max-keys=1"}, 3, 0, 2},
	} {
		rep := report(t, log, append(tt.flags, base...)...)
		l := rep.Limit
		if rep.Keys != tt.keys || l.Refused != tt.refused || rep.EvictedInDebt != tt.evicted {
			t.Errorf("%v: %d keys, %+v; want %+v", tt.flags, rep.Keys, l, tt)
		}
	}
}

func TestAlgorithmsReachTheReport(t *testing.T) {
	rep := report(t, validLine, "--rate=1/m", "--burst=7", "--algorithm=gcra,sliding-log", "-")
	if a := rep.Algorithms; len(a) != 2 || a[0].Algorithm != "gcra" || a[1].Refused != 0 {
		t.Errorf("got %+v", rep)
	}
}

func TestSampleIsLabelledAndTheSameEveryTime(t *testing.T) {
	html := filepath.Join(t.TempDir(), "out.html")
	args := []string{"replay", "--sample", "--rate=5", "--burst=10",
		"--html", html}
	status, first, stderr := tb(t, "", args...)
	if status != 0 || stderr != "" || !strings.HasPrefix(first, "GENERATED SAMPLE") {
		t.Fatalf("status %d, stdout %q, stderr %q", status, first, stderr)
	}
	if _, second, _ := tb(t, "", args...); second != first {
		t.Errorf("got\n%s\nand then\n%s", first, second)
	}
	page, err := os.ReadFile(html)
	if err != nil || !bytes.Contains(page, []byte("GENERATED SAMPLE")) {
		t.Errorf("the page is not marked as a sample: %v", err)
	}
	if rep := report(t, "", args[1:]...); !rep.Sample || rep.Requests != 100_000 {
		t.Errorf("JSON: sample %v with %d requests", rep.Sample, rep.Requests)
	}
}

// stuck is a standard input that ends the context and then blocks.
type stuck context.CancelFunc

func (s stuck) Read([]byte) (int, error) {
	s()
	select {}
}

func TestInterruptPrintsTheReport(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var out, errs bytes.Buffer
	status := program.Run(ctx, []string{"replay", "--rate=5", "--burst=1", "-"}, cli.IO{
		Stdin:  io.MultiReader(strings.NewReader(validLine), stuck(cancel)),
		Stdout: &out, Stderr: &errs,
	})
	if status != 1 || !strings.HasPrefix(out.String(), "INTERRUPTED") ||
		!strings.Contains(out.String(), "stdin: 1 line,") || errs.String() != "tb: interrupted\n" {
		t.Errorf("status %d, stdout %q, stderr %q", status, out.String(), errs.String())
	}
}
