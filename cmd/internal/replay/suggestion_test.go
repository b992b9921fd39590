package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/internal/suggest"
	"github.com/seed-181794aa/ratelimit/tb"
)

// suggestOptions returns the options of a suggestion for some rates, with commas between.
func suggestOptions(t testing.TB, share, rates string) Options {
	t.Helper()
	o := Options{
		Suggest: new(Share), Keys: []string{"ip"}, IPv6Prefix: 64, MaxKeys: tb.DefaultMaxKeys,
	}
	if err := o.Suggest.UnmarshalText([]byte(share)); err != nil {
		t.Fatal(err)
	}
	err := o.complete()
	if err == nil && rates != "" {
		o.Rates, err = ratesOf(rates)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// checkSuggestion replays a log with the bursts of a suggestion, and with less.
func checkSuggestion(t *testing.T, o Options, in Input) {
	t.Helper()
	rep := replay(t, o, in)
	for _, r := range rep.Suggestion.Rates {
		refused := func(burst uint64) (greatest float64) {
			o := o
			o.Suggest, o.Rate, o.Burst = nil, r.Rate, int(burst)
			for _, k := range replay(t, o, in).Kinds {
				if k.Matters {
					greatest = max(greatest, share(k.ClientsRefused, k.Clients))
				}
			}
			return greatest
		}
		share := rep.Suggestion.Share
		if refused(r.Burst) > share || r.Burst > 1 && refused(r.Burst-1) <= share {
			t.Errorf("%s: burst %d refuses %v of the keys, and 1 less %v; asked for %v", r.Rate,
				r.Burst, refused(r.Burst), refused(max(1, r.Burst-1)), share)
		}
	}
}

func TestAReplayRefusesWhatTheSuggestionSays(t *testing.T) {
	checkSuggestion(t, suggestOptions(t, "0.5%", "1/m,0.3,5/3s,20"), sampled(6000))
	checkSuggestion(t, suggestOptions(t, "2%", "100,0.7"), sampled(3000))
}

// A client can take the least in a minute under the suggested limit.
func TestTheSuggestedLimitIsTheLeast(t *testing.T) {
	bursts := func(all ...uint64) (rates []RateBurst) {
		for i, burst := range all {
			rate := mustRate(t, []string{"1/m", "0.1", "1", "10", "100"}[i])
			rates = append(rates, RateBurst{rate, burst})
		}
		return rates
	}
	for _, tt := range []struct {
		rates []RateBurst
		rate  string
		burst uint64
	}{
		{bursts(1000, 900, 20, 19, 19), "1/s", 20},
		{bursts(1000, 100, 95, 90, 85), "0.1/s", 100},
		{bursts(0, 10_000, 9000, 8, 8), "10/s", 10}, // a policy needs a second of the rate
		{bursts(1, 1, 1, 1, 1), "1/m", 5},           // a person clicks twice
		{bursts(0, 0, 0, 0, 9), "100/s", 100},
		{bursts(9), "1/m", 9},
	} {
		l := leastLimit(tt.rates, math.MaxInt64)
		if l.Rate.String() != tt.rate || l.Burst != tt.burst {
			t.Errorf("%+v, want %+v", l, tt)
		}
	}
	none := &Suggestion{Rates: bursts(0, 0)}
	if l, why := leastLimit(none.Rates, math.MaxInt64), none.whyNone(nil); l != nil ||
		!strings.HasPrefix(why, "No burst is enough. Try higher rates") {
		t.Errorf("%+v, %s", l, why)
	}
}

// A suggestion looks at all keys, or there is none.
func TestTooManyKeysForASuggestion(t *testing.T) {
	o := suggestOptions(t, "1%", "")
	o.MaxKeys = 2
	for n, want := range []string{"the log is empty", "", "", "the log has more than 2 keys"} {
		var log string
		for i := range n {
			log += strings.Repeat(line(fmt.Sprint(i), 1, 1), minRequests)
		}
		if n > 0 {
			log += line("0", 3601, 1)
		}
		res, err := Run(t.Context(), o, []Input{input("a.log", log)})
		limit := res.Limit
		if (limit != nil) != (want == "") || (err == nil) != (want == "") ||
			err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d keys: %v, %+v; want %q", n, err, limit, want)
		}
		text := rendered(t, res)
		if tooMany := strings.HasPrefix(text,
			"There are too many keys for a suggestion."); tooMany != (n > 2) {
			t.Errorf("%d keys:\n%s", n, text)
		}
	}
}

// The refusals of clients and requests, of all and of each kind, are what a replay has.
func TestTheRefusalsOfASuggestion(t *testing.T) {
	o := suggestOptions(t, "2%", "")
	rep := replay(t, o, sampled(6000))
	l := rep.Limit
	want := replay(t, options(t, l.Rate.String(), int(l.Burst)), sampled(6000))
	if l.KeysRefused != want.Limit.KeysRefused || l.Refused != want.Limit.Refused ||
		*rep.Busiest != *want.Busiest || !slices.Equal(rep.Kinds, want.Kinds) ||
		len(rep.Top) != topKeys {
		t.Errorf("%+v, %+v; a replay has %+v, %+v", l, rep.Kinds, want.Limit, want.Kinds)
	}
	twice := replay(t, options(t, l.Rate.String(), 2*int(l.Burst)), sampled(6000)).Limit.KeysRefused
	if got := rep.Suggestion.TwiceTheBurst; got != twice {
		t.Errorf("%d clients with twice the burst, want %d", got, twice)
	}
	for i, k := range rep.Top {
		if w := want.Top[i]; k.Refused != w.Refused || k.Refused == 0 && k.Requests != w.Requests {
			t.Errorf("%+v; a replay has %+v", k, w)
		}
	}
}

// The curve is what replays refuse, and has the suggested limit.
func TestTheCurveIsWhatAReplayRefuses(t *testing.T) {
	o, in := suggestOptions(t, "1%", "0.1,3"), sampled(2000)
	res := replay(t, o, in)
	suggested, l := 0, res.Limit
	for _, row := range res.burstTable().Rows {
		burst, err := strconv.Atoi(row.Of)
		if err != nil {
			t.Fatal(err)
		}
		rep := replay(t, options(t, l.Rate.String(), burst), in)
		got, matter := rep.Limit, rep.Kinds[0]
		if row.Cells[0] != withShare(matter.ClientsRefused, matter.Clients) ||
			row.Cells[1] != withShare(got.Refused, res.Requests) {
			t.Errorf("%+v; a replay has %+v", row, got)
		}
		if row.More != "" {
			suggested += burst
		}
	}
	if suggested != int(l.Burst) {
		t.Errorf("%d is suggested, want %+v", suggested, l)
	}
}

func TestJSONHasListsNotNulls(t *testing.T) {
	for _, o := range []Options{options(t, "1", 1), suggestOptions(t, "0%", "1")} {
		for _, l := range []string{
			strings.Repeat(line("a", 1, 1), minRequests) + line("a", 7200, 1), line("a", 1, 1), "x\n",
		} {
			res, _ := Run(t.Context(), o, []Input{input("a.log", l)})
			text, err := json.Marshal(res)
			if err != nil || strings.Contains(string(text), "null") {
				t.Errorf("%s, %v", text, err)
			}
		}
	}
}

// A suggestion that does not keep the times of requests counts clients, and no requests.
func TestASuggestionWithoutTimes(t *testing.T) {
	o, in := suggestOptions(t, "1%", "0.1"), sampled(6000)
	m, err := newSuggestionMode(&o)
	if err != nil {
		t.Fatal(err)
	}
	m.collector = suggest.New([]tb.Limit{o.Rates[0].limit(1)}, false) // as beyond the bound of times
	r := &replayer{mode: m, queue: newQueue(queueRequests), report: newReport(&o)}
	if err := errors.Join(r.replayInputs(t.Context(), []Input{in})...); err != nil {
		t.Fatal(err)
	}
	m.fill(r.report)
	got, want := r.report, replay(t, o, in)
	l, w := got.Limit, want.Limit
	if !l.Uncounted || l.Burst != w.Burst || l.KeysRefused != w.KeysRefused || l.KeysRefused == 0 ||
		l.Granted+l.Refused+got.Top[0].Refused+got.Kinds[0].RequestsRefused != 0 ||
		got.Top[0].Requests == 0 || got.Suggestion.Trial != nil {
		t.Errorf("%+v, %+v, %+v; with times %+v", l, got.Top[0], got.Suggestion, w)
	}
	text := words(rendered(t, got))
	for _, part := range []string{
		ofAll(l.KeysRefused, got.Keys, "client") + ". With twice the burst: ", " - - several paths",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in %s", part, text)
		}
	}
	if c := got.burstTable(); len(c.Head) != 1 || len(c.Rows) < 10 {
		t.Errorf("%+v without times", c)
	}
}
