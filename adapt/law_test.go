package adapt

import (
	"math"
	"testing"
	"time"
)

// A refusal counts in whichever copy it is.
func TestTotalsAreOfAllCopies(t *testing.T) {
	var all [copies]counts
	for i := range all {
		all[i].refused.Add(1)
	}
	var sum totals
	if sum.sum(&all); sum.refused != copies {
		t.Errorf("%d of %d are counted", sum.refused, copies)
	}
}

func newTestLaw() *law {
	return newLaw(&Config{
		Capacity: 10, Min: 10, Max: 1000, Start: 500, TargetP99: 200 * time.Millisecond,
	})
}

// answers is a distribution of n answers with one latency, in targets, of which two in a hundred
// take as long as the tail.
func answers(n int, latency, tail float64) (d distribution) {
	put := func(n, latency float64) {
		d.weight[bucketOf(uint64(latency*stepsPerTarget))] += n
		d.total += n
		d.sum += n * latency * 0.2
	}
	put(float64(n)*0.98, latency)
	put(float64(n)*0.02, tail)
	return d
}

func near(got, want float64) bool { return math.Abs(got-want) <= 0.07*want }

// An interval is a quarter longer than the target, within bounds. The gain of a cut is a quarter
// for an interval as long as the target, and less for a longer one.
func TestPaceFollowsTheTarget(t *testing.T) {
	for _, tt := range []struct {
		target, pace time.Duration
		gain         float64
	}{
		{10 * time.Millisecond, 50 * time.Millisecond, 0.05},
		{40 * time.Millisecond, 50 * time.Millisecond, 0.2},
		{200 * time.Millisecond, 250 * time.Millisecond, 0.2},
		{1600 * time.Millisecond, 2 * time.Second, 0.2},
		{time.Hour, 2 * time.Second, 0.4},
	} {
		l := newLaw(&Config{Capacity: 1, Min: 1, Max: 1, TargetP99: tt.target})
		if l.pace != tt.pace || !near(l.gain, tt.gain) || l.estimate.period != 8*tt.pace {
			t.Errorf("target %v: pace %v, gain %v, average over %v, want %v, %v and 8 paces",
				tt.target, l.pace, l.gain, l.estimate.period, tt.pace, tt.gain)
		}
	}
}

// If all clients have left early, no latency is known. That is no reason for a cut.
func TestIntervalWithoutLatencies(t *testing.T) {
	l := newTestLaw()
	v := &interval{end: l.pace, length: l.pace, begun: 100, ended: 50}
	if got := l.next(v); got != 500 || l.trial.open {
		t.Errorf("rate %v, trial %+v, want 500 and no trial", got, l.trial)
	}
}

// A trial ends if all is well and the rate is back at nine tenths of its first rate, or after 40
// intervals.
func TestTrialEndsWhenAllIsWell(t *testing.T) {
	const begin = 100
	for _, tt := range []struct {
		rate float64
		age  time.Duration // in paces
		more time.Duration
		open bool
	}{
		{450, 1, 0, true}, {451, 1, 0, false}, {450, 40, 0, true}, {450, 40, 1, false},
	} {
		l := newTestLaw()
		l.rate = tt.rate
		l.trial = trial{open: true, begin: begin * l.pace, rate: 500}
		l.next(&interval{
			end: (begin+tt.age)*l.pace + tt.more, length: l.pace, begun: 100, ended: 100,
			latency: answers(100, 0.1, 0.1),
		})
		if l.trial.open != tt.open {
			t.Errorf("%+v: open %t", tt, l.trial.open)
		}
	}
}

func TestPassing(t *testing.T) {
	for _, c := range []struct {
		begun, ended uint64
		want         float64
	}{
		{100, 50, 0.5}, {100, 120, 1.2}, {100, 5, 0.3}, {100, 500, 1.5}, {100, 91, 1}, {100, 109, 1},
	} {
		if got := passing(&interval{begun: c.begun, ended: c.ended}); got != c.want {
			t.Errorf("%d of %d: %v, want %v", c.ended, c.begun, got, c.want)
		}
	}
}

// TestMeanFollowsTheQueue requires the mean of Little's law if many requests are open, and the mean
// of the answers if few are.
func TestMeanFollowsTheQueue(t *testing.T) {
	l := newTestLaw()
	v := &interval{length: 250 * time.Millisecond, ended: 100, latency: answers(100, 0.1, 0.1)}
	for open, want := range map[uint64]float64{0: 0.02, 400: 1} {
		if v.open = open; !near(l.mean(v), want) {
			t.Errorf("%d open: %v s, want %v s", open, l.mean(v), want)
		}
	}
	v.length = time.Hour // the clock stepped forward
	if got := l.mean(v); got > 10 {
		t.Errorf("after an hour: %v s, want the mean of the longest interval", got)
	}
}

func TestEstimateOfFewAnswers(t *testing.T) {
	e := estimate{target: 200 * time.Millisecond, period: time.Second}
	var p50, p99 float64
	for i := range 40 { // one interval of five has a slow answer: one answer of 50
		d := answers(10, 0.1, 0.1)
		if i%5 == 0 {
			d.weight[bucketOf(stepsPerTarget)]++
			d.total, d.sum = d.total+1, d.sum+0.2
		}
		p50, p99 = e.observe(&d, 250*time.Millisecond, d.mean())
	}
	if !near(p50, 0.02) || p99 < 0.15 {
		t.Errorf("median %v s, p99 %v s, want 0.02 s and about 0.2 s", p50, p99)
	}
}

// Most answers are fast and some are slow. If a queue grows by half a target, the median does too.
func TestMedianMovesWithTheMean(t *testing.T) {
	e := estimate{target: 200 * time.Millisecond, period: time.Second}
	d := answers(1000, 0.1, 20)
	if p50, _ := e.observe(&d, 250*time.Millisecond, d.mean()+0.1); !near(p50, 0.02+0.1) {
		t.Errorf("median %v s, want 0.12 s", p50)
	}
}

// TestEstimateOfAMovingQueue requires that a queue that comes and goes does not count as a tail.
func TestEstimateOfAMovingQueue(t *testing.T) {
	e := estimate{target: 200 * time.Millisecond, period: time.Second}
	var p99 float64
	for _, latency := range []float64{0.1, 0.1, 3, 2, 1, 0.1, 0.1} {
		d := answers(60, latency, latency)
		_, p99 = e.observe(&d, 250*time.Millisecond, d.mean())
	}
	if p99 > 0.025 {
		t.Errorf("p99 %v s, want 0.02 s", p99)
	}
}

func TestAimOfTheHigherRateIsLower(t *testing.T) {
	l := newTestLaw()
	l.rate = 10
	low := l.aim()
	l.rate = 1000
	if high := l.aim(); !near(low, 0.21) || !near(high, 0.14) {
		t.Errorf("%v s to %v s, want 0.21 s to 0.14 s", low, high)
	}
	l.config.Min = l.config.Max
	if got := l.aim(); !near(got, 0.21) {
		t.Errorf("%v s without a range, want 0.21 s", got)
	}
}

// TestTrial gives a law intervals until its first trial is over.
func TestTrial(t *testing.T) {
	for _, c := range []struct {
		name          string
		latency, tail float64 // in targets, at the first rate
		fails         float64 // share, at the first rate
		helps         bool    // a lower rate lowers all of them
		excused       bool
	}{
		{"slow tail", 0.1, 2, 0, false, true},
		{"slow tail that follows the rate", 0.1, 2, 0, true, false},
		{"slow mean", 1.5, 2, 0, false, false},
		{"failures", 0.1, 0.1, 0.1, false, true},
		{"failures that follow the rate", 0.1, 0.1, 0.4, true, false},
		{"most fail", 0.1, 0.1, 0.6, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newTestLaw()
			excused, top := false, 0.0
			for i := 1; i <= 20 && !excused; i++ {
				share := 1.0
				if c.helps {
					share = l.rate / 500 * l.rate / 500
				}
				v := &interval{
					end:     time.Duration(i) * l.pace,
					length:  l.pace,
					begun:   100,
					ended:   100,
					failed:  uint64(100 * c.fails * share),
					refused: 1,
					latency: answers(100, c.latency*share, c.tail*share),
				}
				l.next(v)
				excused = l.excusedTail > v.end || l.excusedFails > v.end
				top = l.rate
			}
			if excused != c.excused {
				t.Errorf("excused: %v, want %v", excused, c.excused)
			}
			if excused && top < 500 {
				t.Errorf("rate %v after the trial, want at least 500", top)
			}
		})
	}
}

// While the tail is excused, the mean is judged by half of the aim. The median would not show a
// queue in which newcomers overtake.
func TestRoomByTheMean(t *testing.T) {
	l := newTestLaw()
	l.excusedTail = time.Hour
	v := &interval{length: l.pace, begun: 100, ended: 100, latency: answers(100, 0.2, 3)}
	got := l.room(v)
	if want := 1 - v.latency.mean()/(l.aim()/2); math.Abs(got-want) > 1e-12 || want <= 0 {
		t.Errorf("room %v with a mean of %v and an aim of %v, want %v",
			got, v.latency.mean(), l.aim(), want)
	}
}

// Failures count if their average is above what is tolerated by two standard deviations.
func TestFailuresBeyondChance(t *testing.T) {
	const ended, failed = 1000, 40
	weight := -math.Expm1(-1. / 4)
	bound := tolerated + 2*math.Sqrt(tolerated*weight/(2-weight)/ended)
	for _, want := range []bool{false, true} {
		average := bound * 0.999
		if want {
			average = bound * 1.001
		}
		l := newTestLaw()
		l.fails = (average - weight*failed/ended) / (1 - weight) // before the interval
		v := &interval{length: l.pace, ended: ended, failed: failed}
		if got := l.failing(v); got != want || math.Abs(l.fails-average) > 1e-12 {
			t.Errorf("average %v, bound %v: %v, want %v", l.fails, bound, got, want)
		}
	}
	l := newTestLaw()
	l.fails = 0.5
	if l.failing(&interval{length: l.pace, ended: ended, failed: ended * tolerated}) {
		t.Error("an interval with no more failures than are tolerated counts as failing")
	}
}

// A trial ends at the lowest rate, too, although that is not far below its first rate. What does
// not come from the load is excused: half as many failures again are tolerated.
func TestTrialEndsAtTheLowestRate(t *testing.T) {
	for _, failing := range []bool{false, true} {
		l := newTestLaw()
		l.rate, l.average, l.p99, l.fails = l.config.Min, 0.01, 1, 0.1
		l.trial = trial{open: true, rate: 1.2 * l.config.Min, p99: 1, fails: 0.1}
		v := &interval{end: longest * l.pace}
		room := 0.5
		if !failing {
			room = -1
		}
		if !l.futile(v, room, failing) {
			t.Errorf("failing %v: the cuts are not found futile", failing)
		}
		if failing && math.Abs(l.excusedShare-0.15) > 1e-12 {
			t.Errorf("a share of %v is tolerated, want 0.15", l.excusedShare)
		}
	}
}

// Failures cut the rate by their share, and at most by half.
func TestFailuresCutTheRate(t *testing.T) {
	for failed, want := range map[uint64]float64{20: 0.8, 70: 0.5} {
		l := newTestLaw()
		l.fails = 0.5
		begin := l.rate
		v := &interval{
			end: l.pace, length: l.pace, begun: 100, ended: 100, failed: failed,
			latency: answers(100, 0.1, 0.1),
		}
		if got := l.next(v); math.Abs(got/begin-want) > 1e-12 {
			t.Errorf("%d of 100 fail: the rate is %v of %v, want %v", failed, got, begin, want)
		}
	}
}
