package redis

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

var decisions = flag.Int("decisions", 100_000, "decisions that are compared with tb/mutex")

// lastInstant is the end of the script's exact times, in µs: the year 2255.
const lastInstant = exact - 1

// TestDecidesAsMutex runs random programs on the scripts and on tb/mutex. The decisions must be the
// same bit for bit.
func TestDecidesAsMutex(t *testing.T) {
	want := *decisions
	if testing.Short() {
		want = min(want, 30_000)
	}
	s := startSimulator(t, shipped)
	var sum tally
	for seed := uint64(0); sum.decisions < want; seed++ {
		p, ok := newProgram(seed)
		if !ok {
			sum.outOfRange++
			continue
		}
		if err := s.compare(p, &sum); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if seed%1000 == 999 {
			s.flush(t)
		}
	}
	t.Logf("%+v", sum)
	if sum.narrow == 0 || sum.wide == 0 || sum.twins == 0 || sum.granted == 0 ||
		sum.late == 0 || sum.never == 0 || sum.refused < sum.decisions/10 ||
		sum.granted < sum.decisions/10 {
		t.Error("some kind of decision is missing or rare")
	}
}

// tally counts what the programs have reached.
type tally struct {
	narrow, wide, twins, outOfRange          int // limits
	decisions, granted, refused, never, late int
}

// program is a limit, its steps, and the decisions of tb/mutex on them.
type program struct {
	limit tb.Limit
	steps []step
	costs [][]float64 // of each step, in tokens
	want  [][]tb.Decision
	level []tb.Level // before the step
	wide  bool       // run the wide script, even if the limit is narrow
	twins bool       // run takeeach.lua
}

// newProgram returns a random program, or false if its limit is out of range.
func newProgram(seed uint64) (*program, bool) {
	rng := rand.New(rand.NewPCG(seed, 15))
	p := &program{limit: randomLimit(rng), wide: rng.IntN(4) == 0, twins: rng.IntN(3) == 0}
	m, err := newLayout(p.limit)
	if err != nil {
		return nil, false
	}
	now := randomInstant(rng)
	oracle, err := mutex.New[string](p.limit, tb.WithClock(func() time.Time {
		return time.UnixMicro(int64(now))
	}))
	if err != nil {
		return nil, false
	}
	if _, err := oracle.AllowAt(time.Unix(0, 0), "the first reading", 1); err != nil {
		return nil, false
	}
	clientClock := rng.IntN(4) == 0
	latest := now
	var retry tb.Decision
	for range 40 + rng.IntN(160) {
		level, _ := oracle.Level(context.Background(), "a")
		now = nextInstant(rng, now, latest, retry.RetryAfter, level.Full)
		if now > lastInstant {
			break
		}
		latest = max(latest, now)
		n := 1
		if rng.IntN(5) == 0 {
			n = 1 + rng.IntN(8)
		}
		st := step{now: now, deadline: noDeadline, clientClock: clientClock}
		var tokens []float64
		var want []tb.Decision
		before, _ := oracle.Level(context.Background(), "a")
		for range n {
			cost := randomCost(rng, p.limit.Capacity, level.Tokens)
			d, _ := oracle.AllowCost(context.Background(), "a", cost)
			tokens, want = append(tokens, cost), append(want, d)
			st.costs = append(st.costs, m.unitsOfCost(cost))
			retry = d
		}
		p.steps, p.level = append(p.steps, st), append(p.level, before)
		p.costs, p.want = append(p.costs, tokens), append(p.want, want)
	}
	return p, true
}

// compare runs a program on a script.
func (s *simulator) compare(p *program, sum *tally) error {
	m, err := s.layout(p.limit)
	if err != nil {
		return err
	}
	if p.wide {
		m.script, m.takeEach = s.wide, s.wideTakeEach
	}
	if m.script == s.wide {
		sum.wide++
	} else {
		sum.narrow++
	}
	key := fmt.Sprint(p.limit, len(p.steps), p.wide, sum.decisions)
	run := s.states
	if p.twins {
		run = s.twins
		sum.twins++
	}
	states, err := run(&m, key, p.steps)
	if err != nil {
		return fmt.Errorf("limit %+v: %w", p.limit, err)
	}
	for i, st := range states {
		if st.now != p.steps[i].now {
			return fmt.Errorf("limit %+v, step %d at %d µs was decided at %d",
				p.limit, i, p.steps[i].now, st.now)
		}
		if st.now < st.time {
			sum.late++
		}
		if got := m.level(&st); got != p.level[i] {
			return fmt.Errorf("limit %+v, step %d at %d µs: level %+v, tb/mutex has %+v",
				p.limit, i, p.steps[i].now, got, p.level[i])
		}
		for j, want := range p.want[i] {
			got := m.take(&st, p.steps[i].costs[j])
			if got != want {
				return fmt.Errorf("limit %+v, step %d at %d µs, cost %v: %+v, tb/mutex has %+v",
					p.limit, i, p.steps[i].now, p.costs[i][j], got, want)
			}
			sum.count(want)
		}
	}
	return nil
}

func (s *tally) count(d tb.Decision) {
	s.decisions++
	switch {
	case d.Allowed:
		s.granted++
	case d.RetryAfter == tb.Never:
		s.never++
	default:
		s.refused++
	}
}

// randomLimit returns a limit of any size, often at an edge of the scripts.
func randomLimit(rng *rand.Rand) tb.Limit {
	l := tb.Limit{
		Capacity: int(magnitude(rng, tb.MaxCapacity)),
		Per:      time.Duration(magnitude(rng, math.MaxInt64)),
	}
	switch rng.IntN(5) {
	case 0: // round numbers
		l.Capacity = 1 + rng.IntN(1000)
		l.Per = []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour}[rng.IntN(4)]
	case 1: // the divisor is near the edge of narrow.lua, or of wide.lua
		edge := []int64{narrowDivisor, 1 << wideBits}[rng.IntN(2)]
		l.Per = time.Duration(1000 * (edge - 5 + rng.Int64N(10)))
	case 2: // both numbers of the rate are near the edge of wide.lua
		l.Capacity = leastUnits + rng.IntN(tb.MaxCapacity-leastUnits)
		l.Per = time.Duration(1000 * (1<<wideBits - magnitude(rng, 1<<40)))
		l.Tokens = 1<<wideBits - int64(magnitude(rng, 1<<47))
		return l
	case 3: // the product of capacity and divisor is near the edge of narrow.lua
		units := int64(l.Capacity)
		for scale := int64(1); scale < maxScale && int64(l.Capacity)*scale < leastUnits; scale *= 10 {
			units = int64(l.Capacity) * scale * 10
		}
		l.Per = time.Duration(1000 * max(1, exact/(units+2)-5+rng.Int64N(10)))
	}
	l.Tokens = int64(magnitude(rng, uint64(l.Per)))
	return l
}

// magnitude returns a number from 1 to most. All its lengths in bits are as likely.
func magnitude(rng *rand.Rand, most uint64) uint64 {
	return 1 + (rng.Uint64()>>rng.IntN(64))%most
}

func randomInstant(rng *rand.Rand) uint64 {
	switch rng.IntN(4) {
	case 0:
		return rng.Uint64N(3_000_000)
	case 1:
		return lastInstant - magnitude(rng, lastInstant)
	}
	return 1_700_000_000_000_000 + rng.Uint64N(1<<50)
}

// nextInstant returns the time of a step: where the last refusal or the level changes, or a random
// one, at most a second before the latest.
func nextInstant(rng *rand.Rand, now, latest uint64, retry, full time.Duration) uint64 {
	at := func(wait time.Duration) uint64 { // the first µs at which the wait is over, or one before
		if wait == tb.Never {
			return now
		}
		return now + (uint64(wait)+999)/1000 - uint64(rng.IntN(2))
	}
	const second = 1_000_000
	switch rng.IntN(8) {
	case 0:
		now = at(retry)
	case 1:
		now = at(full)
	case 2:
		now = latest - min(latest, rng.Uint64N(second+1))
	case 3:
		now = latest - min(latest, second)
	case 4:
		now += magnitude(rng, 1<<40)
	case 5, 6:
		if full != tb.Never {
			now += rng.Uint64N(uint64(full)/1000/uint64(1+rng.IntN(50)) + 2)
		}
	}
	return max(now, latest-min(latest, second))
}

// randomCost returns a cost, often one that the tokens just pay.
func randomCost(rng *rand.Rand, capacity int, tokens float64) float64 {
	switch rng.IntN(6) {
	case 0:
		return 1
	case 1:
		return float64(magnitude(rng, uint64(capacity)))
	case 2:
		return math.Max(1e-6, tokens)
	case 3:
		return float64(capacity) * math.Max(1e-9, rng.Float64()) / float64(1+rng.IntN(10))
	case 4:
		return float64(capacity + rng.IntN(2))
	}
	return math.Max(1e-6, math.Round(rng.Float64()*float64(capacity)*1000)/1000)
}
