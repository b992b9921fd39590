package replay

import (
	"slices"
	"testing"
)

func TestTheCurveIsWhatAReplayRefuses(t *testing.T) {
	o, in := suggestOptions(t, "1%", "0.1,3"), sampleInput(6000)
	o.Picture = true
	rep := replay(t, o, in).Report
	c := rep.Suggestion.curve
	if c.Clients != int(rep.Keys) || c.Requests != rep.Requests ||
		c.Rates[c.Rate].Rate != rep.Suggestion.Limit.Rate ||
		c.Bursts[c.Burst] != rep.Suggestion.Limit.Burst ||
		int(c.Rates[c.Rate].Clients[c.Burst]) != rep.Suggestion.Limit.Refused {
		t.Errorf("%+v does not have the limit of %+v", c, rep.Suggestion)
	}
	o.Suggest, o.Picture = Share{}, false
	for i, r := range c.Rates {
		o := o
		o.Rates = o.Rates[i : i+1]
		for bursts := range slices.Chunk(c.Bursts, maxSweep) {
			o.Bursts = nil
			for _, b := range bursts {
				o.Bursts = append(o.Bursts, Burst(b))
			}
			for j, got := range replay(t, o, in).Report.Limits {
				k := slices.Index(c.Bursts, bursts[j])
				if r.Clients[k] != got.KeysRefused || r.Requests[k] != got.Refused {
					t.Errorf("%s, burst %d: %d clients and %d requests; a replay refuses %d and %d",
						r.Rate, bursts[j], r.Clients[k], r.Requests[k], got.KeysRefused, got.Refused)
				}
			}
		}
	}
}

func TestTheCurveWithoutFixedCosts(t *testing.T) {
	o := suggestOptions(t, "1%", "3")
	o.Cost, o.Picture = mustCost(t, "bytes/KiB"), true
	c := replay(t, o, sampleInput(1000)).Report.Suggestion.curve
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
