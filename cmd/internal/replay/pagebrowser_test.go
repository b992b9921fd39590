//go:build chromium

package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// tab is a tab of a browser that shows a page.
type tab struct {
	t        *testing.T
	ctx      context.Context
	messages <-chan string
}

// open opens a page from a file.
func open(t *testing.T, page string) tab {
	t.Helper()
	ctx := testkit.Browser(t)
	b := tab{t, ctx, testkit.Console(t, ctx)}
	file := testkit.File(t, "page.html", page)
	b.do(chromedp.Navigate("file://"+file), chromedp.WaitVisible("#text-title"))
	return b
}

func (b tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// text returns the value of an expression.
func (b tab) text(expression string) string {
	b.t.Helper()
	got, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("String("+expression+")"))
	if err != nil {
		b.t.Fatal(err)
	}
	return got
}

// check fails if an expression has another value.
func (b tab) check(expression, want string) {
	b.t.Helper()
	if got := b.text(expression); got != want {
		b.t.Errorf("%s is %q, want %q", expression, got, want)
	}
}

// close fails if the browser reported an error, such as a violation of the security policy.
func (b tab) close() {
	b.t.Helper()
	b.check(`document.title.endsWith(": tb replay")`, "true")
	for len(b.messages) > 0 {
		b.t.Errorf("console: %s", <-b.messages)
	}
}

const shownOrder = `[...document.querySelectorAll("#clients tbody th bdi")]` +
	`.map((key) => key.textContent)`

// A user reads the chart of a suggestion, in a light and in a dark browser.
func TestPageOfASuggestion(t *testing.T) {
	rep := replay(t, suggestOptions(t, "1%", ""), sampled(6000))
	var page strings.Builder
	if err := rep.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	b := open(t, page.String())
	b.check(`document.querySelectorAll(".plot[role=img][aria-label] canvas").length`, "2")
	colours := make(map[string]bool)
	for _, scheme := range []string{"light", "dark"} {
		b.do(testkit.Preference("prefers-color-scheme", scheme))
		colours[b.text(`getComputedStyle(document.body).backgroundColor`)] = true
	}
	if len(colours) != 2 {
		t.Error("light and dark have the same background")
	}
	b.check(`document.getAnimations().length`, "0")
	// Labels that would cover each other are one, at the dot.
	b.check(`apart({ valToPos: (v) => v }, [{ x: 90, y: 0, text: "a" }, { x: 5, y: 1, text: "b",`+
		` dot: true }]).map((m) => [m.x, m.y, m.text, m.dots[0].x].join(";")).join()`, "5;1;a, b;5")
	b.check(`read($("bursts")).columns[0][
		$("bursts").querySelector("small").closest("tr").rowIndex - 1]`, fmt.Sprint(rep.Limit.Burst))
	b.close()
}

// A user points at the chart, and the tip has the time and the counts there, inside the chart.
func TestPageShowsValues(t *testing.T) {
	b := open(t, pageOf(t, options(t, "1", 1), sampled(6000)))
	b.check(`document.querySelectorAll(".plot[role=img][aria-label] canvas").length`, "1")
	b.check(`[...document.querySelectorAll("details")].some((details) => details.open)`, "false")
	b.do(chromedp.EmulateViewport(1280, 1000))
	var box struct{ Left, Top, Width, Height float64 }
	const over = `JSON.stringify(` +
		`document.querySelector("#time-chart .u-over").getBoundingClientRect())`
	if err := json.Unmarshal([]byte(b.text(over)), &box); err != nil {
		t.Fatal(err)
	}
	before := ""
	for _, share := range []float64{0.01, 0.5, 0.99} {
		b.do(chromedp.MouseEvent(chromedp.MouseMoved, box.Left+box.Width*share, box.Top+box.Height/2))
		got := b.text(`(() => {
			const tip = document.querySelector("#time-chart .tip"), over = tip.parentNode;
			const [a, b] = [tip, over].map((node) => node.getBoundingClientRect());
			return tip.hidden || a.left < b.left || a.right > b.right + 1 ? "outside" : tip.textContent;
		})()`)
		if !regexp.MustCompile(`^2025-03-10 ..:..:..(, [\w ]+: [\d,]+){2}$`).MatchString(got) ||
			got <= before {
			t.Errorf("the tip at %v is %q, after %q", share, got, before)
		}
		before = got
	}
	b.close()
}

// No key runs a script, and the browser shows each as it is in the text report.
func TestPageShowsHostileKeys(t *testing.T) {
	o := options(t, "1", 1)
	o.Keys = []string{"user"}
	b := open(t, pageOf(t, o, input("<b>\u202e.log", hostileLog(t))))
	var want []string
	for _, user := range slices.Backward(hostile) {
		want = append(want, keyText([]string{user}))
	}
	b.check(shownOrder, strings.Join(want, ","))
	b.check(`document.scripts.length + document.querySelectorAll("b, img").length`, "1")
	b.check(`/[\u202e\u2028\x1b]/.test(document.body.innerText)`, "false")
	b.close()
}
