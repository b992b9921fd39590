package replay

import "testing"

// The costs of each candidate are the outcome of its replay.
func TestTheCostsOfCandidates(t *testing.T) {
	o, in := suggestOptions(t, "2%", ""), sampled(6000)
	s := replay(t, o, in).Report.Suggestion
	if len(s.Candidates) != len(o.Suggest.columns()) {
		t.Fatalf("%d candidates", len(s.Candidates))
	}
	for _, c := range s.Candidates {
		rate := mustRate(t, c.Rate)
		got := replay(t, options(t, c.Rate, Burst(c.Burst)), in).Report.Limits[0]
		if c.ClientsRefused != got.KeysRefused || c.RequestsRefused == nil ||
			*c.RequestsRefused != got.Refused || c.LongestWait != 1/rate.approximate() {
			t.Errorf("%+v; a replay refuses %d clients and %d requests", c, got.KeysRefused, got.Refused)
		}
		if c.Share == s.Share && (c.Rate != s.Limit.Rate || int(c.ClientsRefused) != s.Limit.Refused) {
			t.Errorf("%+v is not the suggested limit %+v", c, s.Limit)
		}
	}
	o.Cost = mustCost(t, "bytes/KiB")
	if c := replay(t, o, in).Report.Suggestion.Candidates[0]; c.RequestsRefused != nil ||
		c.LongestWait != 0 {
		t.Errorf("%+v although costs vary", c)
	}
}
