package replay

import (
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/internal/algorithm"
)

// compared replays a log with all algorithms and returns the report, and the outcomes by name.
func compared(t *testing.T, o Options, in Input) (*Report, map[string]AlgorithmOutcome) {
	t.Helper()
	o.Algorithms = algorithm.Names
	rep := replay(t, o, in)
	outcomes := make(map[string]AlgorithmOutcome)
	for _, a := range rep.Algorithms {
		outcomes[a.Algorithm] = a
	}
	return rep, outcomes
}

// A burst before the edge of a window and a burst after it: 10:00:20 is a multiple of the window,
// 20 s.
func TestAlgorithmsByHand(t *testing.T) {
	log := strings.Repeat(line("a", 19, 1), 15) + strings.Repeat(line("a", 20, 1), 15) +
		strings.Repeat(line("a", 30, 1), 15) + line("b", 30, 1)
	rep, got := compared(t, options(t, "0.5", 10), input("a.log", log))
	text := words(rendered(t, rep))
	for name, granted := range map[string]uint64{
		"fixed-window": 21, "sliding-log": 11, "sliding-window": 16, "gcra": 16,
	} {
		g, refused := got[name], rep.Requests-granted
		row := words(grouped(refused) + " " + percent(share(refused, rep.Requests)) + " 1 " + name)
		if g.Refused != refused || g.KeysRefused != 1 || !strings.Contains(text, row) {
			t.Errorf("%s: %+v, want %d granted, and %q in\n%s", name, g, granted, row, text)
		}
	}
}

// GCRA grants what the token bucket grants, and the replay without algorithms is the same.
func TestAlgorithmsOfASample(t *testing.T) {
	o := options(t, "2", 20)
	rep, got := compared(t, o, sampled(20_000))
	bucket := *replay(t, o, sampled(20_000)).Limit
	if bucket != *rep.Limit || got["gcra"].Refused != bucket.Refused ||
		got["gcra"].KeysRefused != bucket.KeysRefused || bucket.Refused == 0 {
		t.Errorf("%+v and %+v, without algorithms %+v", *rep.Limit, got["gcra"], bucket)
	}
}

// A key beyond the bound is an error.
func TestAlgorithmsLookAtAllKeys(t *testing.T) {
	o := options(t, "1", 10)
	o.MaxKeys, o.Algorithms = 2, algorithm.Names[:1]
	_, err := Run(t.Context(), o,
		[]Input{input("a.log", line("a", 1, 1)+line("b", 1, 1)+line("c", 1, 1))})
	const want = "more than 2 keys, and --algorithm looks at all of them: want a greater --max-keys"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}
