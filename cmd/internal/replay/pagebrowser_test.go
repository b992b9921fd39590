package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

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

const (
	shownOrder = `[...document.querySelectorAll("#keys tbody th bdi")].map((key) => key.textContent)`
	sorts      = `[...document.querySelectorAll("#keys thead th")].map((th) => th.ariaSort ?? "-")`
)

// A user sorts the keys with the mouse and the keyboard, in a light and in a dark browser.
func TestPageSortsTheKeys(t *testing.T) {
	log := strings.Repeat(line("c2", 1, 1), 5) + strings.Repeat(line("c10", 1, 1), 3) +
		strings.Repeat(line("c1", 1, 1), 4) + strings.Repeat(line("c1", 120, 1), 20)
	b := open(t, pageOf(t, options(t, "1", 2), input("a.log", log)))
	b.check(shownOrder, "c1,c2,c10")
	b.check(sorts, "-,descending,-,-,-,-")
	header := func(i int) string { return fmt.Sprintf("#keys thead th:nth-child(%d) button", i) }
	for _, tt := range []struct {
		press       chromedp.Action[chromedp.Void]
		order, sort string
	}{
		{chromedp.Click(header(2)), "c10,c2,c1", "-,ascending,-,-,-,-"},
		{chromedp.Click(header(1)), "c1,c2,c10", "ascending,-,-,-,-,-"},
		{chromedp.SendKeys(header(1), kb.Enter), "c10,c2,c1", "descending,-,-,-,-,-"},
		{chromedp.SendKeys(header(3), " "), "c1,c2,c10", "-,-,descending,-,-,-"},
		{chromedp.SendKeys(header(6), kb.Enter), "c1,c2,c10", "-,-,-,-,-,descending"},
	} {
		b.do(tt.press)
		b.check(shownOrder, tt.order)
		b.check(sorts, tt.sort)
	}
	colours := make(map[string]bool)
	for _, scheme := range []string{"light", "dark"} {
		b.do(testkit.Preference("prefers-color-scheme", scheme))
		b.check(lowContrast, "")
		colours[b.text(`getComputedStyle(document.body).backgroundColor`)] = true
	}
	if len(colours) != 2 {
		t.Error("light and dark have the same background")
	}
	b.check(`document.getAnimations().length`, "0")
	b.close()
}

// A user points at a chart, zooms into it and out again, and follows the link to a bucket.
func TestPageShowsValuesAndBuckets(t *testing.T) {
	b := open(t, pageOf(t, options(t, "1", 1), sampled(6000)))
	var box struct{ Left, Top, Width, Height float64 }
	const chart = `JSON.stringify(document.querySelector(".chart").getBoundingClientRect())`
	if err := json.Unmarshal([]byte(b.text(chart)), &box); err != nil {
		t.Fatal(err)
	}
	place := func(share float64) (x, y float64) {
		return box.Left + box.Width*(80+share*(960-80-36))/960, box.Top + box.Height/2
	}
	x, y := place(0.5)
	b.do(chromedp.MouseEvent(chromedp.MouseMoved, x, y))
	b.check(`/^2025-03-10 1\d:\d\d:00: [\d,]+ requests/.test(
		document.querySelector("#tip").textContent)`, "true")
	b.check(`document.querySelector("#tip").hidden`, "false")
	const view = `document.querySelector(".data").getAttribute("viewBox").split(" ")
		.map((x) => Math.round(x)).join(" ")`
	const first = `document.querySelector(".x").textContent`
	whole, mark := b.text(view), b.text(first)
	x, y = place(0.25)
	b.do(chromedp.MouseEvent(chromedp.MousePressed, x, y, chromedp.ButtonLeft))
	x, y = place(0.75)
	b.do(chromedp.MouseEvent(chromedp.MouseReleased, x, y, chromedp.ButtonLeft))
	b.check(view, "291 26 422 184")
	b.check(`/^03-10 \d\d:\d\d:\d\d$/.test(`+first+`)`, "true")
	b.do(chromedp.DoubleClick("figure:first-of-type .chart"))
	b.check(view, whole)
	b.check(first, mark)
	b.do(chromedp.SendKeys("figure:first-of-type .scroll", "+"))
	b.check(view, "291 26 422 184")
	b.do(chromedp.SendKeys("figure:first-of-type .scroll", "--"))
	b.check(view, whole)

	const shown = `[...document.querySelectorAll(".bucket")].filter((b) => b.checkVisibility())
		.map((b) => b.id)`
	b.check(shown, "bucket-0,bucket-1,bucket-2")
	b.do(chromedp.Click("#keys tbody tr:nth-child(5) a"))
	b.check(shown, "bucket-0,bucket-1,bucket-2,bucket-4")
	b.check(`document.querySelector("#bucket-4 figcaption").textContent.startsWith(
		document.querySelector("#keys tbody tr:nth-child(5) a").textContent)`, "true")
	b.close()
}

// lowContrast lists the elements whose text has a contrast of less than 4.5 to 1 (WCAG 2.2, 1.4.3).
const lowContrast = `(() => {
	const luminance = (color) => color.match(/[\d.]+/g).slice(0, 3).map((c) => c / 255)
		.map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
		.reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
	const ground = (node) => {
		const color = getComputedStyle(node).backgroundColor;
		return color === "rgba(0, 0, 0, 0)" && node.parentElement ? ground(node.parentElement) : color;
	};
	return [...document.querySelectorAll("body *")].filter((node) => {
		const style = getComputedStyle(node);
		const text = node.namespaceURI.endsWith("svg") ? style.fill : style.color;
		if (!node.textContent.trim() || node.children.length || text === "none") return false;
		const [low, high] = [luminance(text), luminance(ground(node))].sort((a, b) => a - b);
		return (high + 0.05) / (low + 0.05) < 4.5;
	}).map((node) => node.outerHTML).join(", ");
})()`

func TestPageWithoutRefusals(t *testing.T) {
	b := open(t, pageOf(t, options(t, "1", 5), input("a.log", line("a", 1, 1))))
	b.check(`document.querySelector("#keys-title").textContent`, "No key is refused")
	b.check(`document.querySelector("#keys")`, "null")
	b.close()
}

// On paper of A4 nothing is cut off.
func TestPageOnPaper(t *testing.T) {
	const cutOff = `[...document.querySelectorAll(".scroll")].filter((box) =>
		getComputedStyle(box).overflowX !== "visible" ||
		box.scrollWidth > document.body.clientWidth).length`
	for _, o := range []Options{options(t, "1", 1), suggestOptions(t, "1%", "")} {
		b := open(t, pageOf(t, o, sampled(6000)))
		b.do(chromedp.EmulateViewport(794, 1123))
		if b.text(cutOff) == "0" {
			t.Error("the page fits on a screen")
		}
		b.do(testkit.Print())
		b.check(cutOff, "0")
		b.close()
	}
}

// No key runs a script, and the browser shows each as it is in the text report.
func TestPageShowsHostileKeys(t *testing.T) {
	o := options(t, "1", 1)
	o.Keys = []string{"user"}
	b := open(t, pageOf(t, o, input("a.log", hostileLog(t))))
	var want []string
	for _, user := range slices.Backward(hostile) {
		want = append(want, keyText([]string{user}))
	}
	b.check(shownOrder, strings.Join(want, ","))
	b.do(chromedp.Click("#keys thead th:nth-child(2) button"))
	slices.Reverse(want)
	b.check(shownOrder, strings.Join(want, ","))
	b.close()
}
