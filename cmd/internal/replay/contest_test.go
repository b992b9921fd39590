package replay

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/cmd/internal/algorithm"
)

// compared replays a log with all algorithms and returns the report, and the outcomes by name.
func compared(t *testing.T, o Options, in Input) (*Report, map[string]AlgorithmOutcome) {
	t.Helper()
	o.Algorithms = algorithm.Names
	rep := &replay(t, o, in).Report
	outcomes := make(map[string]AlgorithmOutcome)
	for i, a := range rep.Algorithms {
		if a.Algorithm != algorithm.Names[i] || a.Granted+a.Refused != rep.Requests {
			t.Errorf("outcome %d of %d requests: %+v", i, rep.Requests, a)
		}
		outcomes[a.Algorithm] = a
	}
	if len(outcomes) != len(algorithm.Names) {
		t.Errorf("%d outcomes: %+v", len(outcomes), outcomes)
	}
	return rep, outcomes
}

// A burst before the edge of a window and a burst after it: 10:00:20 is a multiple of the window,
// 20 s.
func TestAlgorithmsByHand(t *testing.T) {
	log := strings.Repeat(line("a", 19, 1), 15) + strings.Repeat(line("a", 20, 1), 15) +
		strings.Repeat(line("a", 30, 1), 15) + line("b", 30, 1)
	rep, got := compared(t, options(t, "0.5", 10), input("a.log", log))
	if rep.Window != 20 {
		t.Errorf("a window of %v s", rep.Window)
	}
	for name, want := range map[string]AlgorithmOutcome{ // the other fields have their own tests
		"token-bucket":   {Granted: 16, MostInWindow: 15, MostInTenth: 10, LargestState: 16},
		"fixed-window":   {Granted: 21, MostInWindow: 20, MostInTenth: 20, LargestState: 16},
		"sliding-log":    {Granted: 11, MostInWindow: 10, MostInTenth: 10, LargestState: 48},
		"sliding-window": {Granted: 16, MostInWindow: 15, MostInTenth: 10, LargestState: 24},
		"leaky-bucket":   {Granted: 16, MostInWindow: 10, MostInTenth: 1, LargestState: 16},
		"gcra":           {Granted: 16, MostInWindow: 15, MostInTenth: 10, LargestState: 16},
	} {
		g := got[name]
		if g.Granted != want.Granted || g.MostInWindow != want.MostInWindow ||
			g.MostInTenth != want.MostInTenth || g.LargestState != want.LargestState {
			t.Errorf("%s: %+v, want %+v", name, g, want)
		}
		// Of a: the queue has 0 to 18 s at :19, and 9 s at :30 for the first of five.
		wantDelay := 0.0
		if name == "leaky-bucket" {
			wantDelay = (90.0 + 9 + 11 + 13 + 15 + 17) / 16
		}
		if g.MeanDelay != wantDelay {
			t.Errorf("%s: a mean delay of %v s, want %v", name, g.MeanDelay, wantDelay)
		}
	}
}

// On a real mix of keys and costs no algorithm grants more than its bound, GCRA and the leaky
// bucket grant what the token bucket grants, and the replay without algorithms is the same.
func TestAlgorithmsOfASample(t *testing.T) {
	for _, cost := range []string{"1", "0.3", "bytes/KiB"} {
		o := options(t, "2", 20)
		o.Cost = mustCost(t, cost)
		rep, got := compared(t, o, sampled(20_000))
		bucket := got["token-bucket"]
		for name, g := range got {
			if g.MostInWindow > g.BoundInWindow || g.MostInTenth > g.BoundInTenth ||
				g.MostInTenth > g.MostInWindow || g.MostInWindow == 0 || g.MostPartial ||
				g.Granted == 0 || g.RefusedShare != share(g.Refused, rep.Requests) ||
				g.Forgotten != 0 || g.NsPerDecision <= 0 {
				t.Errorf("cost %s, %s: %+v", cost, name, g)
			}
		}
		for _, name := range []string{"gcra", "leaky-bucket"} {
			if got[name].Granted != bucket.Granted || bucket.Refused == 0 {
				t.Errorf("cost %s: %s %+v, token bucket %+v", cost, name, got[name], bucket)
			}
		}
		plain := replay(t, o, sampled(20_000)).Report.Limits[0]
		if plain != rep.Limits[0] || bucket.Granted != plain.Granted {
			t.Errorf("cost %s: %+v and %+v, without algorithms %+v", cost, rep.Limits[0], bucket, plain)
		}
	}
}

// A late request is decided at the latest time of its key, and other keys do not move that time.
func TestAlgorithmsKeepTheTimeOfAKey(t *testing.T) {
	for _, second := range []uint64{1, 20, 39} {
		o := options(t, "0.1", 2)
		o.Algorithms = algorithm.Names
		c, err := newContest(&o)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []request{{"a", 39, 0}, {"a", second, 0}, {"b", second, 0}, {"a", 40, 0},
			{"b", second, 0}, {"b", second, 0}} {
			c.add(r.key, 1, int64(r.now)*1e9)
		}
		for _, g := range c.outcomes() {
			want := uint64(4)
			if g.Algorithm == "fixed-window" { // its window ends at :40
				want = 5
			}
			if g.Granted != want || g.MostInWindow != float64(want-2) {
				t.Errorf("a line at %d: %+v, want %d granted", second, g, want)
			}
		}
	}
}

// Half of the lines of the real log are out of order. The token bucket decides them as without
// algorithms, and no algorithm exceeds its bound.
func TestAlgorithmsOfTheRealLog(t *testing.T) {
	for _, cost := range []string{"1", "2.5", "bytes/KiB"} {
		o := options(t, "1", 20)
		o.Cost = mustCost(t, cost)
		rep, got := compared(t, o, realInput(t))
		bucket := got["token-bucket"]
		if l := rep.Limits[0]; bucket.Granted != l.Granted || bucket.Refused != l.Refused {
			t.Errorf("cost %s: %+v, want %+v", cost, bucket, l)
		}
		for name, g := range got {
			if g.MostInWindow > g.BoundInWindow || g.MostInTenth > g.BoundInTenth {
				t.Errorf("cost %s, %s: %+v", cost, name, g)
			}
			isBucket := name == "gcra" || name == "leaky-bucket"
			if isBucket && o.Cost.constant > 0 && g.Granted != bucket.Granted {
				t.Errorf("cost %s, %s: %+v, want %+v", cost, name, g, bucket)
			}
		}
	}
}

// A cost above the burst is refused, and is not in the bound of the leaky bucket.
func TestAlgorithmsRefuseACostAboveTheBurst(t *testing.T) {
	o := options(t, "1", 10)
	o.Cost = mustCost(t, "bytes")
	log := line("a", 1, 11) + line("a", 1, 3) + line("a", 1, 2)
	_, got := compared(t, o, input("a.log", log))
	for name, g := range got {
		if g.Granted != 2 || g.Refused != 1 {
			t.Errorf("%s: %+v", name, g)
		}
	}
	if g := got["leaky-bucket"]; g.BoundInWindow != 13 || g.BoundInTenth != 4 {
		t.Errorf("bounds %v and %v, want 13 and 4", g.BoundInWindow, g.BoundInTenth)
	}
}

// The bound on keys holds for each algorithm.
func TestAlgorithmsWithFewKeys(t *testing.T) {
	o := options(t, "1/h", 1)
	o.MaxKeys = 2
	var log strings.Builder
	for i := range 30 {
		log.WriteString(line(fmt.Sprint(i%3), 1, 1))
	}
	_, got := compared(t, o, input("a.log", log.String()))
	for name, g := range got {
		if g.Granted < 10 || g.Forgotten != g.Granted-2 {
			t.Errorf("%s: %+v", name, g)
		}
	}
}

func TestTextOfAlgorithms(t *testing.T) {
	o := options(t, "1", 20)
	o.MaxKeys = 2
	o.Algorithms = []string{"gcra", "leaky-bucket"}
	rep := &replay(t, o, sampled(5_000)).Report
	decoded := fromJSON(t, rep)
	text := rendered(t, rep)
	want := []string{"limit 1/s, burst 20", "window 20s for 20 tokens", "requests 5,000",
		"in 20s bound in 2s bound"}
	for _, a := range decoded.Algorithms {
		delay := "–"
		if a.MeanDelay > 0 {
			delay = durationText(time.Duration(a.MeanDelay * 1e9))
		}
		want = append(want, words(fmt.Sprintf("%s %s %s %v %v %v %v %s 16 %.0f",
			a.Algorithm, grouped(a.Granted), grouped(a.Refused), a.MostInWindow, a.BoundInWindow,
			a.MostInTenth, a.BoundInTenth, delay, a.NsPerDecision)))
		want = append(want, fmt.Sprintf("%s forgot %s times a key", a.Algorithm, grouped(a.Forgotten)))
		if a.Forgotten == 0 {
			t.Errorf("no key was forgotten: %+v", a)
		}
	}
	for _, want := range want {
		if !strings.Contains(words(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if decoded.Window != 20 || decoded.Algorithms[0].MeanDelay != 0 {
		t.Errorf("%+v", decoded)
	}
}

func TestTokensHaveAtMostOneDecimal(t *testing.T) {
	for n, want := range map[float64]string{
		0: "0", 1: "1", 1.04: "1", 1.05: "1.1", 27.5: "27.5", 2_147_483_648: "2,147,483,648",
	} {
		if got := tokens(n); got != want {
			t.Errorf("%v: %s, want %s", n, got, want)
		}
	}
}

// Without a request there is no time of a decision.
func TestAlgorithmsOfAnEmptyLog(t *testing.T) {
	o := options(t, "1", 20)
	o.Algorithms = algorithm.Names
	res, _ := Run(t.Context(), o, accesslog.Schema{}, []Input{input("a.log", "x\n")})
	for _, a := range res.Report.Algorithms {
		if a.Granted+a.Refused != 0 || a.NsPerDecision != 0 {
			t.Errorf("%+v", a)
		}
	}
}

// The time of a decision is the median of the latest batches.
func TestTimeOfADecision(t *testing.T) {
	l, err := algorithm.NewLimit(mustRate(t, "1").limit(1))
	if err != nil {
		t.Fatal(err)
	}
	limiter, err := algorithm.New("gcra", l, 1)
	if err != nil {
		t.Fatal(err)
	}
	c := contender{name: "gcra", limiter: limiter, peaks: newPeaks(l.Window())}
	for range timedBatches / 2 {
		c.addTime(1)
	}
	for range timedBatches/2 + 1 {
		c.addTime(7)
	}
	if got := c.outcome(l, 0).NsPerDecision; got != 7 {
		t.Errorf("%v ns, want 7", got)
	}
	for range timedBatches {
		c.addTime(9)
	}
	if got := c.outcome(l, 0).NsPerDecision; got != 9 || len(c.times) != timedBatches {
		t.Errorf("%v ns of %d times, want 9", got, len(c.times))
	}
}

// A replay that follows a log has several outcomes. They do not change which times are the latest.
func TestTimeOfADecisionAfterAnOutcome(t *testing.T) {
	o := options(t, "1", 1)
	o.Algorithms = []string{"gcra"}
	contest, err := newContest(&o)
	if err != nil {
		t.Fatal(err)
	}
	c := contest.contenders[0]
	for i := range timedBatches {
		c.addTime(float64(100 - 99*(2*i/timedBatches))) // first slow, then fast
	}
	first := contest.outcomes()[0].NsPerDecision
	c.addTime(1)
	if second := contest.outcomes()[0].NsPerDecision; first != 100 || second != 1 {
		t.Errorf("medians %v and %v, want 100 and, without the earliest slow time, 1", first, second)
	}
}
