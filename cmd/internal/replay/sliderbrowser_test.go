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
func (s *Suggestion) refusedBy(rate int, burst uint64) string {
	all := []string{}
	for _, c := range s.Limit.clients {
		if need := c.needs[rate]; need > burst {
			all = append(all, keyText(c.Key)+" "+grouped(need))
		}
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}

// use returns the command and the policy that set a limit, with the rate of the suggestion that has
// an index.
func (s *Suggestion) use(rate int, burst uint64) string {
	l := SuggestedLimit{Rate: s.Rates[rate].Rate, rate: s.Rates[rate].rate, Burst: burst}
	text := fmt.Sprintf("tb replay --rate %s --burst %d FILE", l.Rate, burst)
	l.addPolicy(&Options{
		Keys: []string{"ip"}, IPv6Prefix: 64, Cost: Cost{text: "1", constant: 1},
	})
	if l.Policy != nil {
		text += "\ntb proxy --policy policy.json\n\npolicy.json:\n\n" + policyText(l.Policy)
	}
	return text
}

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
	s := res.Report.Suggestion
	curve := s.curve
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
		b.check(`document.querySelector("#use").textContent`, s.use(rate, curve.Bursts[burst]))
		b.check(shownClients, s.refusedBy(rate, curve.Bursts[burst]))
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
