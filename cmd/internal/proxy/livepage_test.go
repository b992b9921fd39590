package proxy

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

// A user opens the page, sends a burst, and sees the bucket drain and fill.
func TestPage(t *testing.T) {
	ctx := testkit.Browser(t)
	r := run(t, func(*Command) {})
	messages := testkit.Console(t, ctx)
	do := func(actions ...chromedp.Action[chromedp.Void]) {
		if err := chromedp.Do(ctx, actions...); err != nil {
			t.Fatal(err)
		}
	}
	text := testkit.Text(t, ctx)
	do(chromedp.Navigate(r.admin), chromedp.WaitVisible("#burst"), chromedp.WaitVisible(".bucket"))
	if got := text(".bucket"); !strings.Contains(got, "10 of 10 tokensnone refused yet") {
		t.Errorf("before the burst: %s", got)
	}
	do(chromedp.Click("#burst button"), chromedp.WaitVisible("#replies .is-refused"),
		chromedp.WaitVisible(".bucket .refusals.some"))
	if n := strings.Count(text("#replies"), "✓ 200"); n < 10 || n > 14 {
		t.Errorf("%d of 15 were granted: %s", n, text("#replies"))
	}
	for selector, want := range map[string]string{
		"#replies":          "✗ 429retry in 1 s",
		"#verdict":          "refused",
		".bucket .rule":     "per-address",
		".bucket .key":      "ip:address=127.0.0.1",
		".bucket .level":    "of 10 tokens",
		".bucket .refusals": "refused",
		"#rules":            "per-address",
		"#charts":           "per-address",
		"#connection":       "live",
	} {
		if got := text(selector); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q in it", selector, got, want)
		}
	}
	// The page shows that the bucket fills again.
	for what, condition := range map[string]string{
		"refill": `document.querySelector(".bucket .level").textContent === "10 of 10 tokens"`,
		"label": `document.querySelector(".bucket svg").getAttribute("aria-label") ===
			"10 of 10 tokens"`,
		"retry": `document.querySelector("#verdict").textContent.includes("The wait is over")`,
		"chart": `/[1-9]\d* refused/.test(document.querySelector("figcaption").textContent)`,
	} {
		if _, err := chromedp.Run(ctx, chromedp.Poll[bool](condition)); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	background := `getComputedStyle(document.body).backgroundColor`
	colours := map[string]bool{}
	for _, scheme := range []string{"light", "dark"} {
		do(testkit.Preference("prefers-color-scheme", scheme))
		colour, err := chromedp.Run(ctx, chromedp.Evaluate[string](background))
		if err != nil {
			t.Fatal(err)
		}
		colours[colour] = true
	}
	if len(colours) != 2 {
		t.Errorf("light and dark have the same background: %v", colours)
	}
	for len(messages) > 0 {
		t.Errorf("console: %s", <-messages)
	}
}

// The keyboard alone is enough to send the form. The page works without motion.
func TestPageByKeyboard(t *testing.T) {
	ctx := testkit.Browser(t)
	r := run(t, func(*Command) {})
	if err := chromedp.Do(ctx,
		testkit.Preference("prefers-reduced-motion", "reduce"),
		chromedp.Navigate(r.admin),
		chromedp.WaitVisible("#burst"),
		chromedp.SendKeys("#burst input", "\r"),
		chromedp.WaitVisible("#replies .is-refused"),
		chromedp.WaitVisible(".bucket .refusals.some"),
	); err != nil {
		t.Fatal(err)
	}
	full := `document.querySelector(".bucket .level").textContent === "10 of 10 tokens"`
	if _, err := chromedp.Run(ctx, chromedp.Poll[bool](full)); err != nil {
		t.Error(err)
	}
}

// The table of the rules shows delays and costs that responses report.
func TestPageShowsDelaysAndCosts(t *testing.T) {
	ctx := testkit.Browser(t)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Usage", "70")
	}))
	t.Cleanup(upstream.Close)
	policy := file(t, `{"rules": [
		{"name": "queue", "limit_keys": [], "on_limit": "delay", "max_delay": "10s",
			"algorithm_config": {"rps": 20, "burst": 1}},
		{"name": "usage", "limit_keys": [], "algorithm_config": {"tokens_per_second": 0.001,
			"burst": 100, "default_cost": 10, "cost_source": "response:header:x-usage"}}
	]}`)
	r := run(t, func(c *Command) {
		c.Policy = policy
		_ = c.Upstream.UnmarshalText([]byte(upstream.URL))
	})
	for range 2 {
		get(t, r.proxy)
	}
	cells := `[...document.querySelectorAll("#rules tr")].map(tr =>
		[...tr.children].map(cell => cell.textContent).join("|"))`
	if err := chromedp.Do(ctx, chromedp.Navigate(r.admin)); err != nil {
		t.Fatal(err)
	}
	shown := `document.querySelectorAll("#rules tr").length === 2`
	if _, err := chromedp.Run(ctx, chromedp.Poll[bool](shown)); err != nil {
		t.Fatal(err)
	}
	rows, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](cells))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		`^queue\|enforce\|1\|20/s\|2\|0\|1, by \d+ ms\|0\|0\|1\|0\|–\|–$`,
		`^usage\|enforce\|100\|.*\|2\|0\|0\|0\|0\|1\|0\|140\|0$`,
	} {
		if !regexp.MustCompile(want).MatchString(rows[i]) {
			t.Errorf("row %q, want %s", rows[i], want)
		}
	}
}
