package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/cmd/internal/samplelog"
	"github.com/seed-181794aa/ratelimit/tb"
)

// suggestOptions returns the options of a suggestion for some rates, with commas between.
func suggestOptions(t testing.TB, share, rates string) Options {
	t.Helper()
	c := Command{
		Key: []string{"ip"}, IPv6Prefix: 64, Cost: mustCost(t, "1"), MaxKeys: tb.DefaultMaxKeys,
		Overflow: "forgive",
	}
	if err := c.Suggest.UnmarshalText([]byte(share)); err != nil {
		t.Fatal(err)
	}
	if rates != "" {
		if err := c.Sweep.UnmarshalText([]byte("rate=" + rates)); err != nil {
			t.Fatal(err)
		}
	}
	o, err := c.options()
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func sampleInput(lines int) Input {
	return Input{"sample", func() (io.ReadCloser, error) {
		return io.NopCloser(samplelog.New(lines)), nil
	}}
}

// checkSuggestion replays a log with the bursts of a suggestion, and with less.
func checkSuggestion(t *testing.T, o Options, in Input) {
	t.Helper()
	rep := replay(t, o, in).Report
	for _, r := range rep.Suggestion.Rates {
		o := o
		o.Suggest, o.Rates, o.Reference = Share{}, []Rate{r.rate}, true
		for _, b := range r.Clients {
			o.Bursts = append(o.Bursts, Burst(b.Burst), Burst(max(1, b.Burst-1)))
		}
		limits := replay(t, o, in).Report.Limits
		for i, b := range r.Clients {
			got, less := limits[2*i], limits[2*i+1]
			if got.KeysRefusedShare > b.Share || b.Burst > 1 && less.KeysRefusedShare <= b.Share {
				t.Errorf("%s: burst %d refuses %d of %d keys, and 1 less %d; asked for %v", r.Rate,
					b.Burst, got.KeysRefused, rep.Keys, less.KeysRefused, b.Share)
			}
		}
	}
}

func TestAReplayRefusesWhatTheSuggestionSays(t *testing.T) {
	checkSuggestion(t, suggestOptions(t, "0.5%", "1/m,0.3,5/3s,20"), sampleInput(6000))
	o := suggestOptions(t, "2%", "100,0.7")
	o.Cost = mustCost(t, "bytes/KiB")
	checkSuggestion(t, o, sampleInput(3000))
	o.Cost = mustCost(t, "3")
	checkSuggestion(t, o, sampleInput(3000))
}

func TestAReplayOfTheRealLogRefusesWhatTheSuggestionSays(t *testing.T) {
	checkSuggestion(t, suggestOptions(t, "2%", "0.01,1"), realInput(t))
}

func TestTheSuggestedLimitIsTheKnee(t *testing.T) {
	bursts := func(all ...uint64) *Suggestion {
		s := &Suggestion{Clients: 1, Share: 0.01}
		for i, burst := range all {
			rate := mustRate(t, []string{"1/m", "0.1", "1", "10", "100"}[i])
			s.Rates = append(s.Rates, RateBursts{
				Rate: rate.String(), rate: rate, Clients: []ShareBurst{{0, 7}, {0.01, burst}},
			})
		}
		return s
	}
	for _, tt := range []struct {
		s     *Suggestion
		rate  string
		burst uint64
		atEnd bool
	}{
		{bursts(1000, 900, 20, 19, 19), "1/s", 20, false},
		{bursts(1000, 100, 95, 90, 85), "0.1/s", 100, false},
		{bursts(0, 1000, 900, 8, 8), "10/s", 10, false}, // a policy needs a second of the rate
		{bursts(9, 9, 9, 9, 9), "1/m", 9, true},
		{bursts(9), "1/m", 9, false},
	} {
		l := tt.s.choose(0.01)
		raised := tt.burst == 10
		if l.Rate != tt.rate || l.Burst != tt.burst || l.AtEnd != tt.atEnd || l.raised != raised {
			t.Errorf("%+v, want %+v", l, tt)
		}
	}
	if l := bursts(0, 0).choose(0.01); l != nil {
		t.Errorf("%+v although no burst is enough", l)
	}
}

func TestASuggestionFromASampleSaysSo(t *testing.T) {
	o := suggestOptions(t, "1%", "1")
	o.MaxKeys = 100
	rep := replay(t, o, sampleInput(10_000)).Report
	s := rep.Suggestion
	n := uint64(s.Clients) * s.OneIn
	if s.Clients > 100 || s.OneIn < 2 || n < rep.Keys/2 || n > rep.Keys*2 {
		t.Errorf("%d clients, one in %d, of %d", s.Clients, s.OneIn, rep.Keys)
	}
	var b strings.Builder
	if err := rep.WriteText(&b); err != nil || !strings.Contains(b.String(), fmt.Sprintf(
		"this is an estimate from %d of them, one in %d.", s.Clients, s.OneIn)) {
		t.Errorf("%v\n%s", err, b.String())
	}
}

func TestASuggestionWithoutClients(t *testing.T) {
	o := suggestOptions(t, "1%", "1")
	o.MaxKeys = 1
	for log, want := range map[string]string{
		"x\n": "keys                 0\n\nThe first malformed lines",
		line("a", 1, 1) + line("b", 1, 1) + line("c", 1, 1) + line("d", 1, 1) + line("e", 1, 1): "" +
			"keys                 0            estimated\n\n" +
			"No key is in the sample that fits into --max-keys.\n",
	} {
		res, _ := Run(t.Context(), o, accesslog.Schema{}, []Input{input("a.log", log)})
		s := res.Report.Suggestion
		if text := rendered(t, &res.Report); !strings.Contains(text, want) ||
			strings.Contains(text, "rate") || s.Clients != 0 || s.Limit != nil {
			t.Errorf("%+v\n%s", s, text)
		}
		for _, b := range s.Rates[0].Clients {
			if b.Burst != 1 {
				t.Errorf("burst %d without a client", b.Burst)
			}
		}
	}
}

func TestSharesAreParsed(t *testing.T) {
	for text, want := range map[string]string{
		"0.1%": "0.1 %", "0%": "0 %", "50%": "50 %", "0.00005%": "0.00005 %",
	} {
		var s Share
		if err := s.UnmarshalText([]byte(text)); err != nil || s.String() != want || !s.isSet() {
			t.Errorf("%q: %v, %v", text, s, err)
		}
	}
	for _, text := range []string{"", "1", "%", "-1%", "50.1%", "1e-3%", "0.1 %", "NaN%"} {
		var s Share
		if err := s.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestASuggestionIsDrawn(t *testing.T) {
	for _, rates := range []string{"", "1"} {
		for _, log := range []string{line("a", 1, 1), line("a", 1, 1) + line("a", 1, 1), "x\n"} {
			o := suggestOptions(t, "0.2%", rates)
			o.Picture = true
			res, err := Run(t.Context(), o, accesslog.Schema{}, []Input{input("a.log", log)})
			if err != nil && log != "x\n" {
				t.Fatal(err)
			}
			var page, text strings.Builder
			if err := errors.Join(res.WriteHTML(&page), res.Report.WriteText(&text)); err != nil {
				t.Fatal(err)
			}
			if drawn := strings.Contains(page.String(), ">0.2 %<"); drawn != (log != "x\n") {
				t.Errorf("%q: drawn %v", log, drawn)
			}
		}
	}
}

func TestASuggestionInJSONHasListsNotNulls(t *testing.T) {
	o := suggestOptions(t, "0%", "1")
	for _, cost := range []string{"1", "bytes/KiB"} {
		o.Cost = mustCost(t, cost)
		for _, log := range []string{line("a", 1, 1), "x\n"} {
			res, _ := Run(t.Context(), o, accesslog.Schema{}, []Input{input("a.log", log)})
			text, err := json.Marshal(&res.Report)
			if err != nil || strings.Contains(string(text), "null") {
				t.Errorf("%s, %v", text, err)
			}
		}
	}
}
