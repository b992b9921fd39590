package replay

import (
	"slices"
	"testing"
)

func TestTheCurveIsWhatAReplayRefuses(t *testing.T) {
	o, in := suggestOptions(t, "1%", "0.1,3"), sampled(2000)
	o.Picture = true
	res := replay(t, o, in)
	c, rep := res.curve, &res.Report
	if c.Clients != int(rep.Keys) || c.Requests != rep.Requests ||
		c.Rates[c.Rate].Rate != rep.Suggestion.Limit.Rate ||
		c.Bursts[c.Burst] != rep.Suggestion.Limit.Burst ||
		c.Rates[c.Rate].Clients[c.Burst] != rep.Suggestion.Limit.Refused {
		t.Errorf("%+v does not have the limit of %+v", c, rep.Suggestion)
	}
	for _, r := range c.Rates {
		for i, burst := range c.Bursts {
			got := replay(t, options(t, r.Rate, Burst(burst)), in).Report.Limit
			if r.Clients[i] != got.KeysRefused || r.Requests[i] != got.Refused {
				t.Errorf("%s, burst %d: %d clients and %d requests; a replay refuses %d and %d",
					r.Rate, burst, r.Clients[i], r.Requests[i], got.KeysRefused, got.Refused)
			}
		}
	}
}

func TestTheCurveWithoutFixedCosts(t *testing.T) {
	o := suggestOptions(t, "1%", "3")
	o.Cost, o.Picture = mustCost(t, "bytes"), true
	c := replay(t, o, sampled(1000)).curve
	if r := c.Rates[0]; r.Requests != nil || len(r.Clients) != len(c.Bursts) {
		t.Errorf("%+v", c)
	}
}

func TestBurstsOfTheCurve(t *testing.T) {
	for greatest, most := range map[uint64]int{1: 1, 2: 2, 12: 12, 5000: 90, 1 << 30: 220} {
		bursts := burstsTo(greatest)
		if n := len(bursts); n > most || bursts[0] != 1 || bursts[n-1] != greatest ||
			!slices.IsSorted(bursts) || len(slices.Compact(bursts)) != n {
			t.Errorf("to %d: %v", greatest, bursts)
		}
	}
}
