package proxy

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

// A user switches between a token bucket and a fixed window with the keyboard, and sees the edge.
func TestPageSwitchesTheAlgorithm(t *testing.T) {
	ctx := testkit.Browser(t)
	r := run(t, func(*Command) {})
	if err := chromedp.Do(ctx, chromedp.Navigate(r.admin), chromedp.WaitVisible("#edge")); err != nil {
		t.Fatal(err)
	}
	text := testkit.Text(t, ctx)
	check := func(verdict string, before, after int) {
		t.Helper()
		if got := text("#edge-verdict"); !strings.HasPrefix(got, verdict) {
			t.Errorf("%q, want %q first", got, verdict)
		}
		for selector, want := range map[string]int{"#before-edge": before, "#after-edge": after} {
			got := text(selector)
			if n := strings.Count(got, "✓ granted"); n != want || strings.Count(got, "✗ refused") != 12-n {
				t.Errorf("%s: %d of 12 granted, want %d: %s", selector, n, want, got)
			}
		}
	}
	check("10 of 24 granted within 184 ms. The bucket", 10, 0)
	down := chromedp.SendKeys("#algorithm input:checked", kb.ArrowDown)
	if err := chromedp.Do(ctx, down); err != nil {
		t.Fatal(err)
	}
	check("20 of 24 granted within 184 ms. The count", 10, 10)
	labels := `[...document.querySelectorAll("#algorithm input")].map((input) =>
		input.labels[0].innerText.trim()).join(", ") + " in " +
		document.querySelector("#algorithm legend").innerText`
	got, err := chromedp.Run(ctx, chromedp.Evaluate[string](labels))
	if want := "Token bucket, Fixed window in Algorithm"; err != nil || got != want {
		t.Errorf("labels %q, %v; want %q", got, err, want)
	}
}
