package replay

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/testkit"
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
	b.check("document.title", "tb replay")
	for len(b.messages) > 0 {
		b.t.Errorf("console: %s", <-b.messages)
	}
}

const (
	shownOrder = `[...document.querySelectorAll("#keys tbody th")].map((th) => th.textContent)`
	sorts      = `[...document.querySelectorAll("#keys thead th")].map((th) => th.ariaSort ?? "-")`

	// The image of the colour scheme is drawn.
	imageIsDrawn = `(() => {
		const image = document.images[0], source = document.querySelector("source");
		const dark = matchMedia("(prefers-color-scheme: dark)").matches;
		return image.currentSrc === (dark ? source.srcset : image.src) && image.complete &&
			image.naturalWidth > 900 && image.alt.length > 10;
	})()`
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
		if _, err := chromedp.Run(b.ctx, chromedp.Poll[bool](imageIsDrawn)); err != nil {
			t.Errorf("%s: %v", scheme, err)
		}
		b.check(lowContrast, "")
		colours[b.text(`getComputedStyle(document.body).backgroundColor`)] = true
	}
	if len(colours) != 2 {
		t.Error("light and dark have the same background")
	}
	b.check(`document.getAnimations().length`, "0")
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

// highest is the top of the curves.
const highest = `Math.min(...["clients", "requests"].flatMap((name) =>
	document.getElementById(name + "-curve").getAttribute("d").split(/[ML]/).slice(1)
		.map((point) => point.split(" ")[1])))`

// A user moves the slider with the keyboard, and reads what the burst refuses.
func TestPageShowsWhatABurstRefuses(t *testing.T) {
	o := suggestOptions(t, "1%", "0.1,3")
	o.Picture = true
	res := replay(t, o, sampled(6000))
	var page strings.Builder
	if err := res.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	curve := res.Report.Suggestion.curve
	b := open(t, page.String())
	check := func(rate, burst int) {
		t.Helper()
		r := curve.Rates[rate]
		want := fmt.Sprintf("%s, burst %s: refuses %s of %s clients (%s) and %s of %s requests"+
			" (%s).", r.Rate, grouped(curve.Bursts[burst]), grouped(r.Clients[burst]),
			grouped(curve.Clients), percent(share(r.Clients[burst], uint64(curve.Clients))),
			grouped(r.Requests[burst]), grouped(curve.Requests),
			percent(share(r.Requests[burst], curve.Requests)))
		b.check(`document.querySelector("#refusals").textContent`, want)
		b.check(`document.querySelector("#burst").getAttribute("aria-valuetext")`,
			grouped(curve.Bursts[burst]))
		x := 50 + 540*float64(burst)/float64(len(curve.Bursts)-1)
		b.check(`document.querySelector("#marker").getAttribute("d")`, fmt.Sprintf("M%.1f 10 V150", x))
		most := max(share(r.Clients[0], uint64(curve.Clients)), share(r.Requests[0], curve.Requests))
		b.check(`document.querySelector("#top").textContent`, percent(most))
		b.check(highest, "10")
	}
	b.check(`document.querySelector("#end").textContent`, grouped(slices.Max(curve.Bursts)))
	check(curve.Rate, curve.Burst)
	b.do(chromedp.SendKeys("#burst", kb.ArrowLeft+kb.ArrowLeft))
	check(curve.Rate, curve.Burst-2)
	b.do(chromedp.SendKeys("#burst", kb.Home))
	check(curve.Rate, 0)
	b.do(chromedp.SendKeys("#burst", kb.End))
	check(curve.Rate, len(curve.Bursts)-1)
	b.do(chromedp.SendKeys("#rate", curve.Rates[1-curve.Rate].Rate[:1]))
	check(1-curve.Rate, len(curve.Bursts)-1)
	b.check(`[...document.querySelectorAll("input, select")].map((input) =>
		input.labels[0].firstChild.textContent.trim())`, "Rate,Burst")
	for _, scheme := range []string{"dark", "light"} {
		b.do(testkit.Preference("prefers-color-scheme", scheme))
		b.check(lowContrast, "")
	}
	b.check(`document.querySelector("#clients-curve").getAttribute("d").split("L").length`,
		fmt.Sprint(len(curve.Bursts)))
	b.close()
}

// A table that was too small for all clients has a sample of them.
func TestPageMarksAnEstimate(t *testing.T) {
	o := suggestOptions(t, "1%", "1,3")
	o.MaxKeys = 100
	b := open(t, pageOf(t, o, sampled(6000)))
	b.check(`/ This is an estimate from one client in \d+\.$/.test(
		document.querySelector("#refusals").textContent)`, "true")
	b.close()
}

func TestPageOfAnEmptyLog(t *testing.T) {
	b := open(t, pageOf(t, suggestOptions(t, "1%", "1")))
	b.check(`document.querySelector("#refusals").textContent`,
		"1/s, burst 1: refuses 0 of 0 clients (0.0 %) and 0 of 0 requests (0.0 %).")
	b.close()
}

func TestPageWithoutRefusals(t *testing.T) {
	b := open(t, pageOf(t, options(t, "1", 5), input("a.log", line("a", 1, 1))))
	b.check(`document.querySelector("#keys-title").textContent`, "No key is refused")
	b.check(`document.querySelector("#keys")`, "null")
	b.close()
}

// On paper nothing is cut off.
func TestPageOnPaper(t *testing.T) {
	b := open(t, pageOf(t, options(t, "1", 1), sampled(6000)))
	const cutOff = `[...document.querySelectorAll(".scroll")].filter((box) =>
		getComputedStyle(box).overflowX !== "visible" ||
		box.scrollWidth > document.body.clientWidth).length`
	b.check(cutOff, "3")
	b.do(testkit.Print())
	b.check(cutOff, "0")
	b.close()
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
