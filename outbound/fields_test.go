package outbound

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// The statuses and headers have the forms in which servers answer, the first one with the fields
// about other things. Each has the Date of the first one, which is not the time of our clock.
var forms = []struct{ vendor, answer, want string }{
	{"GitHub", `200
Date: Wed, 25 Feb 2026 06:13:20 GMT
Content-Type: application/json; charset=utf-8
Etag: W/"0"
Vary: Accept, Authorization
X-Ratelimit-Limit: 5000
X-Ratelimit-Remaining: 4987
X-Ratelimit-Used: 13
X-Ratelimit-Reset: 1772003600
X-Ratelimit-Resource: core`, "any 4987 of 5000 in 1h0m0s, reset in 1h0m0s"},
	{"GitHub, primary limit", `403
X-Ratelimit-Limit: 60
X-Ratelimit-Remaining: 0
X-Ratelimit-Reset: 1772001260`, "refused; any 0 of 60 in 21m0s, reset in 21m0s"},
	{"GitHub, secondary limit", `403
Retry-After: 60
X-Ratelimit-Limit: 5000
X-Ratelimit-Remaining: 4211
X-Ratelimit-Reset: 1772003600`, "refused for 1m0s; any 4211 of 5000 in 1h0m0s, reset in 1h0m0s"},
	{"GitHub, forbidden", `403
X-Ratelimit-Limit: 5000
X-Ratelimit-Remaining: 4211
X-Ratelimit-Reset: 1772003600`, "any 4211 of 5000 in 1h0m0s, reset in 1h0m0s"},
	{"OpenAI", `200
x-ratelimit-limit-requests: 5000
x-ratelimit-limit-tokens: 160000
x-ratelimit-remaining-requests: 4999
x-ratelimit-remaining-tokens: 159976
x-ratelimit-reset-requests: 12ms
x-ratelimit-reset-tokens: 9ms`, "requests 4999 of 5000 in 1m0s, reset in 12ms; " +
		"tokens 159976 of 160000 in 1m0s, reset in 9ms"},
	{"OpenAI, tokens of the day", `429
retry-after-ms: 8640
retry-after: 9
x-ratelimit-limit-requests: 60
x-ratelimit-limit-tokens: 150000
x-ratelimit-remaining-requests: 59
x-ratelimit-remaining-tokens: 0
x-ratelimit-reset-requests: 1s
x-ratelimit-reset-tokens: 6m0s`, "refused for 8.64s; requests 59 of 60 in 1m0s, reset in 1s; " +
		"tokens 0 of 150000 in 6m0s, reset in 6m0s"},
	{"Anthropic", `429
retry-after: 16
anthropic-ratelimit-input-tokens-limit: 200000
anthropic-ratelimit-input-tokens-remaining: 0
anthropic-ratelimit-input-tokens-reset: 2026-02-25T06:14:20Z
anthropic-ratelimit-output-tokens-limit: 80000
anthropic-ratelimit-output-tokens-remaining: 80000
anthropic-ratelimit-output-tokens-reset: 2026-02-25T06:13:20Z
anthropic-ratelimit-requests-limit: 4000
anthropic-ratelimit-requests-remaining: 3999
anthropic-ratelimit-requests-reset: 2026-02-25T07:13:20+01:00
anthropic-ratelimit-tokens-limit: 280000
anthropic-ratelimit-tokens-remaining: 80000
anthropic-ratelimit-tokens-reset: 2026-02-25T06:14:20Z`, "refused for 16s; " +
		"requests 3999 of 4000 in 1m0s, reset in 0s; tokens 80000 of 280000 in 1m0s, reset in 1m0s; " +
		"tokens 0 of 200000 in 1m0s, reset in 1m0s; tokens 80000 of 80000 in 1m0s, reset in 0s"},
	{"Cloudflare", `200
Age: 0
Ratelimit: "default";r=50;t=30
Ratelimit-Policy: "default";q=1200;w=300`, "any 50 of 1200 in 5m0s, reset in 30s"},
	{"Discord", `200
X-RateLimit-Limit: 5
X-RateLimit-Remaining: 0
X-RateLimit-Reset: 1772000002.010
X-RateLimit-Reset-After: 1.25`, "any 0 of 5 in 1.25s, reset in 1.25s"},
	{"Docker Hub", "200\nratelimit-limit: 100;w=21600\nratelimit-remaining: 76;w=21600",
		"any 76 of 100 in 6h0m0s"},
	{"Notion", "529\nRetry-After: 60", "refused for 1m0s"},
	{"Envoy", `429
x-ratelimit-limit: 10, 10;w=60;name="per-ip", 1000;w=3600
x-ratelimit-remaining: 0
x-ratelimit-reset: 41`, "refused; any 0 of 10 in 1m0s, reset in 41s"},
	{"a server that does not say until when", "503\nRateLimit: a;r=0", "any 0 of ?"},
	{"a server in maintenance", `503
Retry-After: Wed, 25 Feb 2026 06:23:20 GMT
Retry-After: wednesday, 25-feb-26 06:23:21 GMT, soon, 5`, "refused for 10m1s"},
	{"express-rate-limit, draft 6", `200
RateLimit-Policy: 100;w=900
RateLimit-Limit: 100
RateLimit-Remaining: 99
RateLimit-Reset: 897`, "any 99 of 100 in 15m0s, reset in 14m57s"},
	{"express-rate-limit, draft 7", `200
RateLimit-Policy: 100;w=900
RateLimit: limit=100, remaining=0, reset=12`, "any 0 of 100 in 15m0s, reset in 12s"},
	{"express-rate-limit, draft 8", `429
Age: 3
RateLimit-Policy: "100-in-15min"; q=100; w=900; pk=:MTI3LjAuMC4x:
RateLimit: "100-in-15min"; r=0; t=12
Retry-After: 12`, "refused for 12s; any 0 of 100 in 15m0s, reset in 12s"},
	{"the draft, several limits", `200
RateLimit-Policy: "burst, requests";q=10;w=1, "hourly";q=5000;w=3600
RateLimit-Policy: "llm";qu="tokens";q=1000;w=60, "bytes";q=9;w=1;qu="content-bytes"
RateLimit: "hourly";r=4000;t=1800
RateLimit: "burst, requests";r=0;t=1, "other\"s";r=3`,
		"requests 0 of 10 in 1s, reset in 1s; any 4000 of 5000 in 1h0m0s, reset in 30m0s; " +
			"tokens ? of 1000 in 1m0s; any ? of 0 in 1s; any 3 of ?"},
	{"X", `429
x-rate-limit-limit: 900
x-rate-limit-remaining: 0
x-rate-limit-reset: 1772000100`, "refused; any 0 of 900 in 1m40s, reset in 1m40s"},
	{"Reddit", `200
x-ratelimit-remaining: 599.0
x-ratelimit-reset: 123`, "any 599 of ? in 2m3s, reset in 2m3s"},
	{"a cache", `200
Age: 12
X-RateLimit-Limit: 20
X-RateLimit-Remaining: 0
X-RateLimit-Reset: 60`, ""},
	{"a redirect that says when to come back", "301\nRetry-After: 60", ""},
	{"fields that are repeated, and milliseconds since 1970", `429
Retry-After: 9, 7
Retry-After: 5
X-RateLimit-Limit: 20
X-RateLimit-Limit: 10
X-RateLimit-Remaining: 3, +0
X-RateLimit-Reset: 11, 4
X-RateLimit-Reset: 1772000011500`, "refused for 9s; any 0 of 10 in 11.5s, reset in 11.5s"},
	{"nonsense", `429
Retry-After: soon
RateLimit: ;;,"=,r=1;t=
RateLimit-Policy: "a;q=NaN
X-RateLimit-Limit: Inf
X-RateLimit-Remaining: 0x1p4
X-RateLimit-Reset: 2026-13-45`, "refused; any 1 of ?"},
	{"less than nothing left", `200
RateLimit: "a";r=5;t=9, "b";r=-1;t=7`, "any 5 of ?, reset in 9s; any 0 of ?, reset in 7s"},
	{"times in the past", `429
Retry-After: -7
X-RateLimit-Limit: -5
X-RateLimit-Remaining: -1
X-RateLimit-Reset: 1000000000`, "refused for 0s; any 0 of 0, reset in 0s"},
	{"times without end", `429
Retry-After: 1e308
X-RateLimit-Limit: 1e400
X-RateLimit-Remaining: 0
X-RateLimit-Reset: 315360000
RateLimit-Policy: "httplimit";q=5;w=999999999999999, "nonsense";q=5;w=1e3x`,
		"refused for 876000h0m0s; any ? of 5 in 876000h0m0s; any ? of 5; " +
			"any 0 of 1.7976931348623157e+308, reset in 87600h0m0s"},
}

func (n notice) String() string {
	s := fmt.Sprintf("%s %v of %v in %v, reset in %v",
		[...]string{"requests", "tokens", "any"}[n.unit], n.remaining, n.limit, n.window, n.wait)
	return strings.NewReplacer("+Inf", "?", " in 0s, reset in -1ns", "", " in 0s,", ",",
		", reset in -1ns", "").Replace(s)
}

func (a answer) String() string {
	var parts []string
	if a.isRefusal {
		parts = append(parts, strings.TrimSuffix(fmt.Sprint("refused for ", a.retry), " for -1ns"))
	}
	for _, n := range a.notices {
		parts = append(parts, n.String())
	}
	return strings.Join(parts, "; ")
}

func TestForms(t *testing.T) {
	date := respond(nil, forms[0].answer).Header["Date"]
	for _, f := range forms {
		w := respond(nil, f.answer)
		w.Header["Date"] = date
		full, quick := read(w.StatusCode, w.Header, true), read(w.StatusCode, w.Header, false)
		if got := full.String(); got != f.want {
			t.Errorf("%s:\n got %s\nwant %s", f.vendor, got, f.want)
		}
		if full.isRefusal != quick.isRefusal || full.pauses(time.Hour) != quick.pauses(time.Hour) {
			t.Errorf("%s: without a rule that learns, %s", f.vendor, quick)
		}
	}
}

func FuzzFields(f *testing.F) {
	for _, form := range forms {
		f.Add(form.answer)
	}
	f.Fuzz(func(t *testing.T, text string) {
		w := respond(nil, text)
		a := read(w.StatusCode, w.Header, true)
		if a.retry != unknown && !a.isRefusal || a.isRefusal && w.StatusCode < 400 {
			t.Errorf("status %d, %v", w.StatusCode, a)
		}
		const most = 100 * 365 * 24 * time.Hour
		for _, n := range append(a.notices, &notice{wait: a.retry}) {
			isTime := min(n.wait, n.window) >= unknown && max(n.wait, n.window) <= most
			if !isTime || !(n.limit >= 0 && n.remaining >= 0) {
				t.Errorf("%v of %v", n, a)
			}
		}
	})
}
