package redis

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/proof/planted"
	"github.com/seed-181794aa/ratelimit/tb"
)

var decisions = flag.Int("decisions", 60_000, "decisions that are compared with tb/mutex")

// TestDecidesAsMutex runs random programs on the script and on tb/mutex: grants, refusals,
// reservations, settled and undone costs, and changes of the limit. All results and levels must be
// the same bit for bit.
func TestDecidesAsMutex(t *testing.T) {
	want := *decisions
	if testing.Short() {
		want = min(want, 20_000)
	}
	s := startSimulator(t, bucketsText)
	var sum tally
	for seed := uint64(0); sum.steps < want; {
		var all []*program
		for range 250 {
			p, ok := newProgram(seed)
			seed++
			if ok {
				all = append(all, p)
			}
		}
		if err := s.compare(all, &sum); err != nil {
			t.Fatal(err)
		}
		s.flush(t)
	}
	t.Logf("%+v", sum)
	for _, n := range []int{
		sum.granted, sum.refused, sum.waiting, sum.tooDeep, sum.settled, sum.undone, sum.converted,
		sum.convertedInDebt, sum.late, sum.kept, sum.held, sum.waitingHeld, sum.convertedHeld,
	} {
		if n < sum.steps/1000 {
			t.Errorf("some kind of decision is rare")
		}
	}
}

type tally struct {
	programs, steps, granted, refused, never, waiting, tooDeep, settled, undone int
	converted, convertedInDebt, late, kept, held, waitingHeld, convertedHeld    int
}

func (p *program) item(i int) item {
	st := &p.steps[i]
	m := p.limits[st.tier]
	switch st.kind {
	case kindTake:
		return item{units: m.unitsOf(st.tokens)}
	case kindReserve:
		return reservation(m.unitsOf(st.tokens), deepest, st.within)
	case kindKeep:
		return item{kind: kindKeep, units: m.unitsOf(st.tokens), keep: m.unitsOf(st.keep)}
	case kindHold:
		return item{kind: kindHold, hold: st.hold}
	case kindGiveBack:
		return m.settlement(p.steps[st.of].tokens, st.tokens)
	case kindUndo:
		return undoOf(p.results[st.of].before, m.unitsOf(p.steps[st.of].tokens))
	}
	return item{kind: kindLook}
}

// compare runs programs on the script, a step of all of them at once.
func (s *simulator) compare(programs []*program, sum *tally) error {
	for _, p := range programs {
		p.results = nil
		sum.programs++
	}
	for i := 0; ; i++ {
		var commands []command
		var of []*program
		for _, p := range programs {
			if i < len(p.steps) {
				name := fmt.Sprint("program ", p.seed)
				for k := 0; k <= i; k++ {
					if p.steps[k].reset {
						name += fmt.Sprint(" ", k)
					}
				}
				st := &p.steps[i]
				commands = append(commands, command{
					now: st.now, parts: []part{p.limits[st.tier].part(name, p.item(i))},
				})
				of = append(of, p)
			}
		}
		if len(commands) == 0 {
			return nil
		}
		replies, err := s.runEach(commands)
		if err != nil {
			return err
		}
		for j, r := range replies {
			if err := of[j].check(i, commands[j].parts[0].items[0], r, sum); err != nil {
				var limits []tb.Limit
				for _, m := range of[j].limits {
					limits = append(limits, m.limit)
				}
				return fmt.Errorf("seed %d, limits %+v, step %d: %+v: %w", of[j].seed, limits, i,
					of[j].steps[i], err)
			}
		}
	}
}

func (p *program) check(i int, it item, r reply, sum *tally) error {
	st := &p.steps[i]
	m := p.limits[st.tier]
	found, failure := r.bucket(0)
	if failure != nil || r.now != st.now {
		return fmt.Errorf("reply %+v, %w", r, failure)
	}
	res := result{before: m.found(found, r.now)}
	after := res.before
	if res.before.held {
		sum.held++
	}
	if got := m.level(&after, 0); got != st.before && st.kind != kindUndo {
		return fmt.Errorf("level %+v, tb/mutex has %+v", got, st.before)
	}
	if after.time > after.now {
		sum.late++
	}
	if i > 0 && p.steps[i-1].tier != st.tier {
		sum.converted++
		if after.deficit > m.capacity {
			sum.convertedInDebt++
		}
		if after.held {
			sum.convertedHeld++
		}
	}
	o := m.apply(&after, &it)
	res.Decision, res.delay = o.Decision, o.delay
	p.results = append(p.results, res)
	sum.steps++
	switch st.kind {
	case kindTake, kindReserve, kindKeep:
		if o.Decision != st.want || o.Allowed && o.delay != st.delay {
			return fmt.Errorf("%+v, tb/mutex has %+v and delay %v", o, st.want, st.delay)
		}
		switch {
		case o.delay > 0 && o.Allowed && res.before.held:
			sum.waitingHeld++
		case o.delay > 0 && o.Allowed:
			sum.waiting++
		case st.kind == kindKeep:
			sum.kept++
		case o.Allowed:
			sum.granted++
		case o.RetryAfter == tb.Never:
			sum.never++
		case st.kind == kindReserve:
			sum.tooDeep++
		default:
			sum.refused++
		}
	case kindGiveBack:
		sum.settled++
	case kindUndo:
		sum.undone++
	}
	if got := m.level(&after, 0); st.kind != kindUndo && st.kind != kindLook && got != st.after {
		return fmt.Errorf("level after %+v, tb/mutex has %+v", got, st.after)
	}
	return nil
}

func plant(t testing.TB, before, bug string) string {
	t.Helper()
	if n := strings.Count(bucketsText, before); n != 1 {
		t.Fatalf("%q occurs %d times, want 1", before, n)
	}
	return strings.Replace(bucketsText, before, bug, 1)
}

var everything = flag.Bool("all", false, "plant all bugs, and simulate more histories and leases")

// TestPlantedBugsAreFound plants the bugs of the script, which proof/planted lists.
func TestPlantedBugsAreFound(t *testing.T) {
	bugs, err := planted.Bugs("script")
	if err != nil {
		t.Fatal(err)
	}
	s := startSimulator(t, bucketsText)
	programs := 600
	var all []*program
	for seed := uint64(0); len(all) < programs; seed++ {
		if p, ok := newProgram(seed); ok {
			all = append(all, p)
		}
	}
	if err := newSimulator(s.client, bucketsText).find(all); err != nil {
		t.Fatalf("without a bug: %v", err)
	}
	planted.Find(t, planted.Chosen(bugs, *everything), func(t *testing.T, b planted.Bug) string {
		text, err := b.In(bucketsText)
		if err != nil {
			t.Fatal(err)
		}
		s.flush(t)
		if err := newSimulator(s.client, text).find(all); err != nil {
			return err.Error()
		}
		return ""
	})
}

func (s *simulator) find(programs []*program) error {
	for _, b := range behaviours {
		if err := b.check(s); err != nil {
			return err
		}
	}
	return s.compare(programs, new(tally))
}
