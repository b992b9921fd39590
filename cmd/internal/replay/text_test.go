package replay

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
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

func TestTextOfALimit(t *testing.T) {
	o := options(t, "1000", 2000)
	o.Keys, o.Cost = []string{"ip", "user"}, mustCost(t, "bytes")
	log := line("2001:db8::1", 10, 2000) + line("2001:db8::2", 10, 1000) +
		line("2001:db8::3", 9, 5000) + line("1.2.3.4", 70, 10) + "broken\n"
	const want = `Limit: 1000/s, burst 2,000.
It refuses 1 of 2 keys (50.0 %) and 2 of 4 requests (50.0 %).
The busiest second, 2015-05-17 10:00:10, has 2 requests. The limit leaves 1.
This is from 4 requests in 1m1s, 2015-05-17 10:00:09 to 2015-05-17 10:01:10 UTC.
A key is ip + user (IPv6 by /64), and a request costs bytes.
a.log: 5 lines, common, 1 malformed.

  See it        tb replay --html page.html --rate 1000/s --burst 2000 --key ip,user --cost bytes FILE
  Find a limit  tb replay --key ip,user --cost bytes FILE

The clients that are refused most, and then send most:

  requests  refused  in a second  key
         3        2            2  2001:db8::/64 -  mostly /p
         1        0            1  1.2.3.4 -  mostly /p

4 requests have no user: such requests share one bucket.
The first malformed lines:
  a.log:5: want ` + "`client ident user [time] \"request\" status size`" + `: "broken"
`
	if got := rendered(t, &replay(t, o, input("a.log", log)).Report); got != want {
		t.Errorf("got:\n%s\nwant:%s", got, want)
	}
}

func TestTextOfASuggestion(t *testing.T) {
	log := strings.Repeat(line("192.0.2.1", 1, 1), 101) + line("b", 1, 1) + line("b", 2, 1)
	o := suggestOptions(t, "50%", "1,3")
	const want = `Suggested limit: 1/s, burst 5. A client may send 5 requests at once, and then 1/s.
It refuses 1 of 2 clients (50.0 %) and 96 of 103 requests (93.2 %).
The busiest second, 2015-05-17 10:00:01, has 102 requests. The limit leaves 6.
This is from 103 requests in 1s, 2015-05-17 10:00:01 to 2015-05-17 10:00:02 UTC.
a.log: 103 lines, common.

  See it          tb replay --html page.html --suggest 50% FILE
  Try it          tb replay --rate 1/s --burst 5 FILE
  Export it       tb replay --export policy --suggest 50% FILE > policy.json
  Run it          tb-proxy --policy policy.json
  Protect a path  tb replay --by-path --suggest 50% FILE
  See all tables  tb replay --all --suggest 50% FILE

The clients that are refused most, and then send most:

  requests  refused  in a second  client
       101       96          101  192.0.2.1  mostly /p
         2        0            1  b  mostly /p
`
	if got := rendered(t, &replay(t, o, input("a.log", log)).Report); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	o.All = true
	const table = `
The least burst that ever refuses at most 50 % of the clients, at each rate:

   rate  burst
  > 1/s      1
    3/s      1
`
	if got := rendered(t, &replay(t, o, input("a.log", log)).Report); !strings.Contains(got, table) {
		t.Errorf("no\n%s\nin\n%s", table, got)
	}
}

func TestTextOfAPolicy(t *testing.T) {
	rep := replayPolicy(t, `{"rules": [
		{"name": "a", "limit_keys": ["ip:address"],
			"algorithm_config": {"tokens_per_second": 1, "burst": 1}},
		{"name": "s", "mode": "shadow", "limit_keys": [],
			"algorithm_config": {"tokens_per_second": 1, "burst": 1}}]}`,
		input("a.log", line("1.1.1.1", 1, 1)+line("1.1.1.1", 1, 1)+line("1.1.1.2", 1, 1)+
			strings.Replace(line("1.1.1.1", 1, 1), "/p", "/..;/", 1)))
	const want = `The policy refuses 1 of 4 requests (25.0 %).
The busiest second, 2015-05-17 10:00:01, has 4 requests. The policy leaves 2.
This is from 4 requests in 1s, 2015-05-17 10:00:01 to 2015-05-17 10:00:01 UTC.
a.log: 4 lines, common.
1 request has no path that all servers read alike, and no rule decides it.

  granted  refused   share  keys refused     mode  rule
        2        1  33.3 %             1  enforce  a
        1        1  50.0 %             1   shadow  s

Refused most:

  refused  rule  key
        1     a  ip:address=1.1.1.1
        1     s  all requests
`
	if got := rendered(t, &rep); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if text, err := json.Marshal(&rep); err != nil || strings.Contains(string(text), "null") {
		t.Errorf("%s, %v", text, err)
	}
}

// The first lines of a result that is not a limit say so, and what to do.
func TestTextOfNoResult(t *testing.T) {
	costly := suggestOptions(t, "0%", "0.1")
	costly.Cost = mustCost(t, "1073741824")
	path := suggestOptions(t, "0%", "70")
	path.Keys = []string{"path"}
	for name, tt := range map[string]struct {
		o        Options
		requests int
		want     string
	}{
		"no burst": {costly, minRequests, "No burst is enough.\nTry higher rates"},
		"no policy": {path, minRequests,
			"\nThere is no policy for tb-proxy: a policy has no key for path.\n"},
		"few requests": {suggestOptions(t, "0%", ""), 1,
			"The log has too few requests to suggest a limit: 1. It takes 100,"},
		"one less": {suggestOptions(t, "0%", ""), 99, "a limit: 99. It takes 100,"},
		"enough":   {suggestOptions(t, "0%", ""), 100, "Suggested limit: 0.1/s, burst 100."},
		"nothing":  {options(t, "1", 5), 0, "There is no request in the log.\nLook whether"},
	} {
		log := strings.Repeat(line("192.0.2.1", 1, 1), tt.requests)
		res, _ := Run(t.Context(), tt.o, []Input{input("a.log", log)})
		if got := rendered(t, &res.Report); !strings.Contains(got, tt.want) ||
			strings.HasSuffix(got, "\n\n") {
			t.Errorf("%s: no %q in\n%s", name, tt.want, got)
		}
	}
}

// What bounds lose is said.
func TestTextOfALossyReplay(t *testing.T) {
	policy, err := policyOptions(t, `{"name": "a", "limit_keys": ["ip:address"],
		"algorithm_config": {"tokens_per_second": 0.00001, "burst": 2}}`)
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]Options{"limit": options(t, "1/d", 2), "policy": policy} {
		o.MaxKeys = 1
		log := line("1.1.1.1", 1, 1) + line("1.1.1.2", 1, 1) + line("1.1.1.3", 60, 1)
		got := rendered(t, &replay(t, o, input("a.log", log)).Report)
		const want = "\n2 keys in debt were dropped from a full table: a greater --max-keys "
		if !strings.Contains(got, want) {
			t.Errorf("%s: no %q in\n%s", name, want, got)
		}
	}
}

// Names that look like verbs of a format are as they are.
func TestNotes(t *testing.T) {
	o := options(t, "1", 2)
	o.Keys, o.Cost = []string{"ip", "ten%d"}, mustCost(t, "weight%d")
	log := `{"ts":1000172801,"ip":"a"}` + "\n" + `{"ts":1000000001,"ip":"a"}`
	got := rendered(t, &replay(t, o, input("a.log", log)).Report)
	for _, want := range []string{
		"\n2 requests have no positive weight%d: each cost 1 token.\n",
		"\n2 requests have no ten%d: such requests share one bucket.\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
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

func TestTimesAreRounded(t *testing.T) {
	for d, want := range map[time.Duration]string{
		1_600_000_000: "2s", 71 * time.Hour: "71h", 90 * time.Minute: "1h30m", 10 * time.Second: "10s",
		time.Hour + time.Second: "1h0m1s", 3 * day: "3 days", 3653*day + 1: "3,653 days",
	} {
		if got := durationText(d); got != want {
			t.Errorf("%d: %s, want %s", d, got, want)
		}
	}
}
