//go:build chromium

package proxy

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// The page shows what a burst takes from its bucket, and how the bucket fills again.
func TestPage(t *testing.T) {
	ctx := testkit.Browser(t)
	r := run(t, func(*Command) {})
	messages := testkit.Console(t, ctx)
	do := func(actions ...chromedp.Action[chromedp.Void]) {
		t.Helper()
		if err := chromedp.Do(ctx, actions...); err != nil {
			t.Fatal(err)
		}
	}
	wait := func(condition string) {
		t.Helper()
		if _, err := chromedp.Run(ctx, chromedp.Poll[bool](condition)); err != nil {
			t.Fatalf("%s: %v", condition, err)
		}
	}
	do(chromedp.Navigate(r.admin), chromedp.WaitVisible("#no-requests"),
		chromedp.WaitVisible("#no-buckets"))
	for range 15 {
		get(t, r.proxy)
	}
	do(chromedp.WaitVisible("#buckets tr"))
	text := testkit.Text(t, ctx)
	for selector, want := range map[string]string{
		"#buckets":    "ip:address=127.0.0.1",
		"#rules":      "per-address",
		"#columns":    "RuleRefusedGrantedRateBurst",
		"#connection": "live",
	} {
		if got := text(selector); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q in it", selector, got, want)
		}
	}
	wait(`/^per-address: .* 1\d granted, [1-5] refused$/.test(
		document.querySelector("figcaption")?.textContent)`)
	wait(`document.querySelector("canvas").closest("[role=img]").ariaLabel.includes("per-address")`)
	wait(`document.querySelector("#buckets meter").value === 10`)
	wait(`document.querySelector("#buckets span").textContent === "10 of 10"`)
	for len(messages) > 0 {
		t.Errorf("console: %s", <-messages)
	}
}

// The rules that refuse stand first, a rule without requests has no chart, and a column without
// counts is not shown. The warnings of the policy are on top, and a narrow screen cuts nothing off.
func TestPageShowsRules(t *testing.T) {
	ctx := testkit.Browser(t)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Usage", "70")
	}))
	t.Cleanup(upstream.Close)
	policy := file(t, `{"rules": [
		{"name": "unused", "limit_keys": ["header:x"], "match": {"header:x": "1"}, "max_delay": "1s",
			"algorithm_config": {"rps": 1, "burst": 1, "adaptive": {"min": 0.5, "max": 2000,
				"target_p99": "1s"}}},
		{"name": "queue", "limit_keys": [], "on_limit": "delay", "max_delay": "10s",
			"algorithm_config": {"rps": 20, "burst": 1}},
		{"name": "usage", "limit_keys": [], "algorithm_config": {"tokens_per_second": 0.001,
			"burst": 100, "default_cost": 10, "cost_source": "response:header:x-usage"}},
		{"name": "login", "limit_keys": ["header:x"], "match": {"header:x": "2"}, "block": "1h",
			"algorithm_config": {"tokens_per_second": 1, "burst": 1}}
	]}`)
	r := run(t, func(c *Command) {
		c.Policy = policy
		_ = c.Upstream.UnmarshalText([]byte(upstream.URL))
	})
	for _, login := range []string{"2", "2", "", ""} {
		get(t, r.proxy, "X", login)
	}
	err := chromedp.Do(ctx, chromedp.EmulateViewport(390, 800), chromedp.Navigate(r.admin))
	if err != nil {
		t.Fatal(err)
	}
	for _, condition := range []string{
		`document.querySelectorAll("figure").length === 3`,
		`[...document.querySelectorAll("#rules tr")].map((row) => [...row.cells]
			.filter((cell) => !cell.hidden).map((cell) => cell.textContent).join("|"))
			.join("\n").replace(/by \d+ ms/, "by time") === ` + "`" +
			"usage|1|2|1 in 1,000 s|100|1|–|–\n" +
			"login|1|1|1/s|1|1|–|–\n" +
			"unused|–|–|1/s, 0.5 to 2,000/s|1|–|–|–\n" +
			"queue|–|2|20/s|1|1|1, by time|10 s`",
		`[...document.querySelectorAll("#buckets span")].some((span) =>
			/^held for (59|60) min$/.test(span.textContent))`,
		`document.querySelector("section").textContent.includes("rules[0].max_delay has no effect")`,
		`[...document.querySelectorAll("main section")].at(-1).querySelector("figure") !== null`,
		`[document.documentElement, ...document.querySelectorAll(".scroll")].every((e) =>
			e.scrollWidth <= e.clientWidth)`,
		`getComputedStyle(document.querySelector("#rules td"), "::before").content.includes("Refused")`,
	} {
		if _, err := chromedp.Run(ctx, chromedp.Poll[bool](condition)); err != nil {
			rows, _ := chromedp.Run(ctx, chromedp.Evaluate[string](
				`document.querySelector("main").innerText`))
			t.Errorf("%s: %v in\n%s", condition, err, rows)
		}
	}
}
