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
	o := options(t, "0.5", 1)
	o.Keys = []string{"ip", "user"}
	log := line("2001:db8::1", 10, 1) + line("2001:db8::2", 10, 1) + line("2001:db8::3", 9, 1) +
		line("1.2.3.4", 70, 1) + "broken\n"
	const want = `Limit: 0.5/s, burst 1. A key may send 1 request at once, and then one every 2s.
It refuses 1 of 2 keys (50.0 %) and 2 of 4 requests (50.0 %).
The busiest second, 2015-05-17 10:00:10, has 2 requests.
This is from 4 requests in 1m1s, 2015-05-17 10:00:09 to 2015-05-17 10:01:10 UTC.
A key is ip + user (IPv6 by /64).
a.log: 5 lines, common, 1 malformed.

Whom the limit refuses:

  keys  refused    share  requests  refused   share  asking for
     1        1  100.0 %         3        2  66.7 %  one path
     1        0    0.0 %         1        0   0.0 %  one request
     1        1  100.0 %         3        2  66.7 %  more than 1 request

  See it        tb replay --html page.html --rate 0.5/s --burst 1 --key ip,user FILE
  Find a limit  tb replay --key ip,user FILE

The clients that are refused most, and then send most:

  requests  refused  in a second  key
         3        2            2  2001:db8::/64 -  mostly /p
         1        0            1  1.2.3.4 -  mostly /p

4 requests have no user: such requests share one bucket.
The first malformed lines:
  a.log:5: want ` + "`client ident user [time] \"request\" status size`" + `: "broken"
`
	if got := rendered(t, replay(t, o, input("a.log", log))); got != want {
		t.Errorf("got:\n%s\nwant:%s", got, want)
	}
}

func TestTextOfASuggestion(t *testing.T) {
	log := strings.Repeat(line("192.0.2.1", 1, 1), 101) + line("192.0.2.1", 7200, 1) +
		line("b", 7200, 1) + line("b", 7201, 1)
	o := suggestOptions(t, "50%", "1,3")
	const want = `Suggested limit: 1/s, burst 5. A client may send 5 requests at once, and then 1/s.
It refuses 1 of 2 clients (50.0 %) and 96 of 104 requests (92.3 %). With twice the burst: 1 client.
It holds for traffic as in these 2h. The first half asks for a burst of 101. ` +
		`On the other half it would have refused 0 of 2 clients (0.0 %) that count.
2 addresses, such as 192.0.2.1, have 104 of 104 requests: proxies or a CDN, and not clients? ` +
		`The log has no X-Forwarded-For. With it, use --trusted-proxies 192.0.2.1/32
The busiest second, 2015-05-17 10:00:01, has 101 requests.
This is from 104 requests in 2h, 2015-05-17 10:00:01 to 2015-05-17 12:00:01 UTC.
a.log: 104 lines, common.

Whom the limit refuses:

  clients  refused    share  requests  refused   share  asking for
        2        1   50.0 %       104       96  92.3 %  one path  (at most 50 %)
        1        1  100.0 %       102       96  94.1 %  more than 5 requests

  See it          tb replay --html page.html --suggest 50% FILE
  Try it          tb replay --rate 1/s --burst 5 FILE
  Export it       tb replay --export policy --suggest 50% FILE > policy.json
  Run it          tb-proxy --policy policy.json
  Protect a path  tb replay --by-path --suggest 50% FILE

The clients that are refused most, and then send most:

  requests  refused  in a second  client
       102       96          101  192.0.2.1  mostly /p
         2        0            1  b  mostly /p
`
	if got := rendered(t, replay(t, o, input("a.log", log))); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
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
The busiest second, 2015-05-17 10:00:01, has 4 requests.
This is from 4 requests in 1s, 2015-05-17 10:00:01 to 2015-05-17 10:00:01 UTC.
a.log: 4 lines, common.

What each rule decides:

  granted  refused   share  keys refused     mode  rule
        2        1  33.3 %             1  enforce  a
        1        1  50.0 %             1   shadow  s

Refused most:

  refused  rule  key
        1     a  ip:address=1.1.1.1
        1     s  all requests

1 request is answered by tb-proxy before any rule, such as for a path of two meanings.
`
	if got := rendered(t, rep); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if text, err := json.Marshal(rep); err != nil || strings.Contains(string(text), "null") {
		t.Errorf("%s, %v", text, err)
	}
}

// The first lines of a result that is not a limit say so, and what to do.
func TestTextOfNoResult(t *testing.T) {
	path := suggestOptions(t, "0%", "70")
	path.Keys = []string{"path"}
	for name, tt := range map[string]struct {
		o        Options
		requests int
		end      int // seconds
		want     string
	}{
		"no policy": {path, minRequests, 7200,
			"\nThere is no policy for tb-proxy: a policy has no key for path.\n"},
		"few requests": {suggestOptions(t, "0%", ""), 1, 7200,
			"The log has too few requests to suggest a limit: 2. It takes 100,"},
		"one less": {suggestOptions(t, "0%", ""), 98, 7200, "a limit: 99. It takes 100,"},
		"enough":   {suggestOptions(t, "0%", "1"), 99, 7200, "Suggested limit: 1/s, burst 99."},
		"less than an hour": {suggestOptions(t, "0%", ""), 100, 3600,
			"The log is too short to suggest a limit: 59m59s."},
		"less than ten intervals": {suggestOptions(t, "0%", "1"), 1000, 9999, "The log is too short for" +
			" the limit that it asks for: a burst of 1,000 at 1/s takes 16m40s to refill"},
		"ten intervals": {suggestOptions(t, "0%", "1"), 1000, 10_001,
			"Suggested limit: 1/s, burst 1,000."},
	} {
		log := strings.Repeat(line("192.0.2.1", 1, 1), tt.requests) + line("192.0.2.1", tt.end, 1)
		res, _ := Run(t.Context(), tt.o, []Input{input("a.log", log)})
		if got := rendered(t, res); !strings.Contains(got, tt.want) ||
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
		got := rendered(t, replay(t, o, input("a.log", log)))
		const want = "\n2 keys in debt were dropped from a full table: a greater --max-keys "
		if !strings.Contains(got, want) {
			t.Errorf("%s: no %q in\n%s", name, want, got)
		}
	}
}

// Names that look like verbs of a format are as they are.
func TestNotes(t *testing.T) {
	o := options(t, "1", 2)
	o.Keys = []string{"ip", "ten%d"}
	log := `{"ts":1000172801,"path":"/","ip":"a"}` + "\n" +
		`{"ts":"2001-09-09T01:46:41","path":"/","ip":"a"}` + "\n" +
		`{"ts":1000000002,"msg":"started","ip":"a"}`
	got := rendered(t, replay(t, o, input("a.log", log)))
	for _, want := range []string{
		"\n2 requests have no ten%d: such requests share one bucket.\n",
		"\nThe times of a.log have no zone, and are read as UTC.\n",
		"\nThe first lines that are not requests:\n  a.log:3: want a request, with a method, ",
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
