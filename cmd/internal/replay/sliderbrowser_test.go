package replay

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

// shownClients are the keys and the burst that each needs.
const shownClients = `[...document.querySelectorAll("#keys tbody tr:not([hidden])")]
	.map((row) => row.querySelector("bdi").textContent + " " + row.cells[1].textContent).sort()`

// refusedBy returns the clients of the page that a limit refuses, as shownClients does.
func (res *Result) refusedBy(rate int, burst uint64) string {
	all := []string{}
	for _, c := range res.keys {
		if need := c.needs[rate]; need > burst {
			all = append(all, keyText(c.Key)+" "+grouped(need))
		}
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}

// A user moves the slider with the keyboard, and reads what the burst refuses.
func TestPageShowsWhatABurstRefuses(t *testing.T) {
	o := suggestOptions(t, "1%", "0.1,3")
	o.Picture = true
	res := replay(t, o, sampled(6000))
	var page strings.Builder
	if err := res.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	s, curve := res.Report.Suggestion, res.curve
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
		at := &SuggestedLimit{Rate: r.Rate, rate: s.Rates[rate].rate, Burst: curve.Bursts[burst]}
		at.addPolicy(&o)
		rep := &Report{Suggestion: &Suggestion{Limit: at}}
		for _, use := range rep.use() {
			b.check(`document.querySelector("#`+use.ID+`").textContent`, use.Text)
		}
		b.check(`document.querySelector("#policy").checkVisibility()`, fmt.Sprint(at.Policy != nil))
		b.check(shownClients, res.refusedBy(rate, curve.Bursts[burst]))
		b.check(`document.querySelector("#burst").getAttribute("aria-valuetext")`,
			grouped(curve.Bursts[burst]))
	}
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
	b.check(`document.querySelector("#curve").getAttribute("role")`, "img")
	b.do(chromedp.Click(`[data-of="policy"]`))
	if _, err := chromedp.Run(b.ctx, chromedp.Poll[bool](
		`document.querySelector('[data-of="policy"]').textContent === "Copied"`)); err != nil {
		t.Errorf("the policy is not copied: %v", err)
	}
	b.close()
}
