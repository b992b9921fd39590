package replay

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

func rendered(t *testing.T, rep *Report) string {
	t.Helper()
	var b strings.Builder
	if err := rep.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// words joins the words of a text with single spaces, whatever its columns are.
func words(s string) string { return strings.Join(strings.Fields(s), " ") }

func TestTextOfASmallReport(t *testing.T) {
	o := options(t, "1", 2)
	o.Keys, o.Cost = []string{"ip", "user"}, mustCost(t, "bytes/KiB")
	log := line("2001:db8::1", 10, 2048) + line("2001:db8::2", 10, 1024) +
		line("2001:db8::3", 9, 5000) + line("1.2.3.4", 70, 10) + "broken\n"
	const want = `
log       a.log: 5 lines, common, 1 malformed
key       ip + user (IPv6 by /64), cost bytes/KiB
time      2015-05-17 10:00:09 to 2015-05-17 10:01:10 UTC (1m1s)
limit     1/s, burst 2

requests             4
granted              2   50.0 %
refused              2   50.0 %   1 of them can never be granted: the cost is above the burst
keys                 2
  refused            1   50.0 %   at least once
evicted              0            in debt

Refused most:

  refused  of requests   share  peak/s  longest run  key
        2            3  66.7 %       2            1  2001:db8::/64 -  mostly /p

1 of 4 requests is earlier than the line before, by up to 1s.
Requests are decided in the order of their times.
4 requests have no user: such requests share one bucket.
The first malformed lines:
  a.log:5: want ` + "`client ident user [time] \"request\" status size`" + `: "broken"
`
	got := rendered(t, &replay(t, o, input("a.log", log)).Report)
	if got != want[1:] {
		t.Errorf("got:\n%s\nwant:%s", got, want)
	}
}

// fromJSON returns a report as a program reads it.
func fromJSON(t *testing.T, rep *Report) (decoded Report) {
	t.Helper()
	encoded, err := json.Marshal(rep)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(encoded, &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

func TestTextAndJSONAgree(t *testing.T) {
	rep := &replay(t, options(t, "2", 10), sampled(20_000)).Report
	decoded := fromJSON(t, rep)
	l, top := decoded.Limits[0], decoded.Top[0]
	got := words(rendered(t, rep))
	for _, want := range []string{
		"requests " + grouped(decoded.Requests),
		"granted " + grouped(l.Granted) + " " + percent(1-l.RefusedShare),
		"refused " + grouped(l.Refused) + " " + percent(l.RefusedShare),
		"keys " + grouped(decoded.Keys) + " refused " + grouped(l.KeysRefused) + " " +
			percent(l.KeysRefusedShare),
		grouped(top.Refused) + " " + grouped(top.Requests) + " " +
			percent(share(top.Refused, top.Requests)) + " " + grouped(top.Peak) + " " +
			grouped(top.LongestRun) + " " + top.Key[0],
		grouped(decoded.SteppedBack) + " of " + grouped(decoded.Requests),
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, rendered(t, rep))
		}
	}
	if l.Granted+l.Refused != decoded.Requests || l.Refused == 0 {
		t.Errorf("%d granted and %d refused of %d", l.Granted, l.Refused, decoded.Requests)
	}
}

func TestTextOfASweep(t *testing.T) {
	o := options(t, "1", 5)
	o.Rates = append(o.Rates, mustRate(t, "300/m"))
	rep := &replay(t, o, sampled(5_000)).Report
	got := words(rendered(t, rep))
	for _, l := range rep.Limits {
		want := words(l.Rate + " 5 " + grouped(l.Refused) + " " + percent(l.RefusedShare) + " " +
			grouped(l.KeysRefused) + " " + percent(l.KeysRefusedShare))
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, rendered(t, rep))
		}
	}
}

func TestTextOfEvictions(t *testing.T) {
	o := options(t, "1/d", 2)
	o.MaxKeys = 1
	log := line("a", 1, 1) + line("b", 1, 1) + line("c", 60, 1)
	got := words(rendered(t, &replay(t, o, input("a.log", log)).Report))
	if want := "evicted 2 in debt, forgiving them 2 tokens"; !strings.Contains(got, want) {
		t.Errorf("no %q in\n%s", want, got)
	}
	o.Overflow = tb.RefuseNew
	got = words(rendered(t, &replay(t, o, input("a.log", log)).Report))
	const want = "evicted 0 in debt; 2 requests refused: the key was new and the table full"
	if !strings.Contains(got, want) {
		t.Errorf("no %q in\n%s", want, got)
	}
}

// A report without notes ends with its table.
func TestTextWithoutNotes(t *testing.T) {
	for _, burst := range [][]Burst{{2}, {2, 3}} {
		o := options(t, "1", 2)
		o.Bursts = burst
		got := rendered(t, &replay(t, o, input("a.log", line("a", 1, 1))).Report)
		if strings.HasSuffix(got, "\n\n") || !strings.HasPrefix(got, "log       a.log: 1 line, ") {
			t.Errorf("got %q", got)
		}
	}
}

func TestLongestStepIsRounded(t *testing.T) {
	for nanos, want := range map[int64]string{
		524_102_400: "524.102ms", 1_000_000_400: "1s", 7_762_989_783_000_000_512: "89,849 days 10h",
		172_800_000_000_000: "2 days", 172_799_000_000_000: "47h59m59s",
	} {
		log := fmt.Sprintf(`{"ts":%d,"ip":"a"}`+"\n"+`{"ts":%d,"ip":"a"}`, 1e18+nanos, int64(1e18))
		rep := &replay(t, options(t, "1", 2), input("a.log", log)).Report
		if got := rendered(t, rep); !strings.Contains(got, "by up to "+want+".\n") {
			t.Errorf("%d ns: no %q in\n%s", nanos, want, got)
		}
	}
}

func TestTextSumsUpManyFiles(t *testing.T) {
	var files []Input
	for i := range 13 {
		files = append(files, input(fmt.Sprintf("%02d.log", i), line("a", i, 1)+"x\n"))
	}
	const last = "\nlog       09.log: 2 lines, common, 1 malformed\n"
	for n, want := range map[int]string{
		10: last + "key ", 11: last + "log       1 more file: 2 lines, 1 malformed\nkey ",
		13: last + "log       3 more files: 6 lines, 3 malformed\nkey ",
	} {
		got := rendered(t, &replay(t, options(t, "1", 2), files[:n]...).Report)
		if !strings.Contains(got, want) {
			t.Errorf("%d files: no %q in\n%s", n, want, got)
		}
	}
}

func TestTextOfCostStandIns(t *testing.T) {
	o := options(t, "1", 2)
	o.Cost = mustCost(t, "weight%d")
	got := rendered(t, &replay(t, o, input("a.log", line("a", 1, 1))).Report)
	const want = "\n1 request has no positive weight%d: each cost 1 token.\n"
	if !strings.HasSuffix(got, want) {
		t.Errorf("no %q in\n%s", want, got)
	}
}

func TestSweepRemarks(t *testing.T) {
	o := options(t, "1/d", 1)
	o.Rates = append(o.Rates, mustRate(t, "1"))
	o.Cost, o.MaxKeys = mustCost(t, "bytes/KiB"), 1
	log := line("a", 1, 1024) + line("b", 1, 1024) + line("c", 60, 2000)
	got := words(rendered(t, &replay(t, o, input("a.log", log)).Report))
	const want = "1/d burst 1; 1 can never be granted: the cost is above the burst;" +
		" 1 key evicted in debt 1/s burst 1; 1 can never"
	if !strings.Contains(got, want) {
		t.Errorf("no %q in\n%s", want, got)
	}
}

func TestKeyTextStaysOnOneLine(t *testing.T) {
	for _, tt := range []struct {
		key  []string
		want string
	}{
		{[]string{"1.2.3.4"}, "1.2.3.4"},
		{[]string{"", "/a b"}, "- /a b"},
		{[]string{"a\nb\x1b[31m"}, `"a\nb\x1b[31m"`},
		{[]string{"\xff"}, `"\xff"`},
		{[]string{strings.Repeat("é", 100)}, strings.Repeat("é", 79) + "…"},
	} {
		if got := keyText(tt.key); got != tt.want {
			t.Errorf("%q is %s, want %s", tt.key, got, tt.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for got, want := range map[string]string{
		grouped(0): "0", grouped(999): "999", grouped(1000): "1,000", grouped(1234567): "1,234,567",
		percent(0): "0.0 %", percent(1): "100.0 %", percent(0.0004): "< 0.1 %",
		percent(0.9999): "> 99.9 %", percent(0.1234): "12.3 %",
		ifAny(0, "%s x"): "", ifAny(1200, "%s x"): "1,200 x",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestTimesAreRounded(t *testing.T) {
	for d, want := range map[time.Duration]string{
		1: "1ns", 1234: "1.234µs", 1_234_567: "1.235ms", 1_234_567_890: "1.235s",
		time.Hour + 1_600*time.Millisecond: "1h0m2s",
	} {
		if got := durationText(d); got != want {
			t.Errorf("%d: %s, want %s", d, got, want)
		}
	}
}
