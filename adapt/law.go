package adapt

import (
	"cmp"
	"math"
	"time"
)

// The constants of the law were chosen with the simulation of the tests (TestGoal).
const (
	minAnswers  = 20   // for an interval of the usual length
	firstGrowth = 0.05 // gain of growth after a cut, before its first rise
	moreGrowth  = 1.5  // factor of the gain in each interval
	fullGrowth  = 0.5
	cutGain     = 0.25 // for intervals as long as the target
	deepestCut  = 0.5
	tolerated   = 0.02 // share of failures that causes no cut
	trialDepth  = 0.7  // share of its first rate at which a trial ends
	excuseTime  = time.Minute
	longest     = 8 // length of the longest interval, in paces
)

// interval is what the controller saw since its last decision.
type interval struct {
	end     time.Duration // since the start of the controller
	length  time.Duration
	begun   uint64
	ended   uint64
	failed  uint64
	refused uint64
	open    uint64        // requests that have begun and not ended
	hold    time.Duration // instant until which the downstream asks for no more requests
	latency distribution
}

// law decides the rate after each interval. It is not safe for concurrent use.
type law struct {
	config *Config
	pace   time.Duration // usual length of an interval
	gain   float64       // cut of one interval at twice the aim

	rate     float64
	growth   float64
	fails    float64 // average share of failures
	average  float64 // of requests that begin now, in seconds, as the next two
	p50, p99 float64
	estimate estimate
	trial    trial
	hold     time.Duration // no growth until then

	excusedTail  time.Duration // until then the mean is judged, not the 99th percentile
	excusedFails time.Duration // until then the share of failures below is tolerated
	excusedShare float64
}

// trial finds out whether a lower rate helps. It begins with the first cut.
type trial struct {
	open  bool
	begin time.Duration
	rate  float64
	p99   float64 // highest since the begin
	fails float64 // highest since the begin
}

func newLaw(c *Config) *law {
	pace := min(max(c.TargetP99*5/4, 50*time.Millisecond), 2*time.Second)
	return &law{
		config:   c,
		pace:     pace,
		gain:     min(0.4, cutGain*c.TargetP99.Seconds()/pace.Seconds()),
		rate:     cmp.Or(c.Start, c.Max),
		growth:   firstGrowth,
		estimate: estimate{target: c.TargetP99, period: longest * pace},
	}
}

func (l *law) next(v *interval) float64 {
	l.rate = min(max(l.decide(v), l.config.Min), l.config.Max)
	return l.rate
}

func (l *law) decide(v *interval) float64 {
	if v.ended == 0 { // the downstream stalls
		l.growth = firstGrowth
		return l.rate * (1 - deepestCut)
	}
	pass, room, failing := passing(v), l.room(v), l.failing(v)
	if room >= 0 && !failing {
		if l.rate > 0.9*l.trial.rate || v.end-l.trial.begin > 5*longest*l.pace {
			l.trial.open = false
		}
		if v.refused == 0 || v.end < l.hold {
			return l.rate
		}
		l.growth = min(fullGrowth, l.growth*moreGrowth)
		return l.rate * pass * (1 + l.growth*room)
	}
	l.growth = firstGrowth
	rate := l.rate * pass * (1 + max(-deepestCut, min(0, l.gain*room)))
	if failing {
		rate *= 1 - min(deepestCut, float64(v.failed)/float64(v.ended))
		l.hold = v.hold
	}
	if l.futile(v, room, failing) {
		return max(l.rate, l.trial.rate)
	}
	return rate
}

// passing returns the share of the requests that the downstream got done. It is below 1 while a
// queue grows and above 1 while a queue drains. A difference that may be chance counts as none.
func passing(v *interval) float64 {
	begun, ended := float64(v.begun), float64(v.ended)
	if math.Abs(begun-ended) <= math.Sqrt(begun) {
		return 1
	}
	return min(1.5, max(0.3, ended/begun))
}

// failing reports whether more requests fail than is tolerated, in the interval and on average.
func (l *law) failing(v *interval) bool {
	ended, failed := float64(v.ended), float64(v.failed)
	weight := smoothing(v.length, 4*l.pace)
	l.fails += weight * (failed/ended - l.fails)
	share := tolerated
	if v.end < l.excusedFails {
		share = l.excusedShare
	}
	deviation := math.Sqrt(share / ended * weight / (2 - weight)) // of the average
	return failed > share*ended && l.fails > share+2*deviation
}

// room returns how far the latency is below the aim, as a share of the aim. It is negative if the
// latency is above the aim.
func (l *law) room(v *interval) float64 {
	if v.latency.total == 0 {
		return 0
	}
	l.average = l.mean(v)
	l.p50, l.p99 = l.estimate.observe(&v.latency, v.length, l.average)
	if v.end < l.excusedTail {
		return 1 - l.average/(l.aim()/2)
	}
	return 1 - l.p99/l.aim()
}

// mean returns the mean latency of requests that begin now, in seconds. It is the number of open
// requests divided by the throughput, by Little's law. The mean of the answers is older by one
// latency. With few open requests it is more precise, so it has more weight then.
func (l *law) mean(v *interval) float64 {
	mean := v.latency.mean()
	if v.ended < minAnswers {
		return mean
	}
	open, length := float64(v.open), min(v.length, longest*l.pace).Seconds()
	weight := open / (open + 5)
	return mean + weight*(open*length/float64(v.ended)-mean)
}

// aim returns the latency to keep, in seconds. It is 105 % of the target at the lowest rate and
// 70 % at the highest. So of two controllers with one downstream, the controller with the higher
// rate gives way.
func (l *law) aim() float64 {
	place := 0.0
	if l.config.Max > l.config.Min {
		place = math.Log(l.rate/l.config.Min) / math.Log(l.config.Max/l.config.Min)
	}
	return l.config.TargetP99.Seconds() * (1.05 - 0.35*place)
}

// futile reports whether the cuts since the begin of the trial did not help. Then neither the
// latency nor the failures come from the load, and futile excuses them.
func (l *law) futile(v *interval, room float64, failing bool) bool {
	t := &l.trial
	if !t.open {
		*t = trial{open: true, begin: v.end, rate: l.rate}
	}
	t.p99, t.fails = max(t.p99, l.p99), max(t.fails, l.fails)
	if l.rate > max(1.01*l.config.Min, trialDepth*t.rate) || v.end-t.begin < longest*l.pace {
		return false
	}
	t.open = false
	judged := v.end >= l.excusedTail // by the 99th percentile
	switch {
	case room < 0 && judged && l.p99 > 0.9*t.p99 && l.average < l.aim()/2:
		l.excusedTail = v.end + excuseTime
	case failing && l.fails < 0.5 && l.fails > 0.7*t.fails:
		l.excusedFails, l.excusedShare = v.end+excuseTime, 1.5*l.fails
	default:
		return false
	}
	return true
}

// smoothing returns the weight of an interval in an exponential average over a period.
func smoothing(length, period time.Duration) float64 {
	return 1 - math.Exp(-length.Seconds()/period.Seconds())
}

// estimate follows the latency of the downstream. A queue moves the mean at once, so the mean of
// the last interval is used. The distance from the mean to the 99th percentile is a property of
// the requests and changes slowly. Few answers show it badly, so it is averaged.
type estimate struct {
	target time.Duration
	period time.Duration // of the average
	recent distribution
	tail   float64 // averaged distance, in seconds
	known  bool    // tail has a value
}

// enough is the number of answers that show the distance to the 99th percentile.
const enough = 300

// observe adds the latencies of an interval. It returns the median and the 99th percentile that
// they would have with the given mean, in seconds.
func (e *estimate) observe(d *distribution, length time.Duration, mean float64) (p50, p99 float64) {
	target := e.target.Seconds()
	if e.recent.total > 0 && math.Abs(d.mean()-e.recent.mean()) > target/4 {
		e.recent = *d // a mix of latencies from before and after a change has too long a tail
	} else {
		// At most four fifths of the weight stay, so the memory is about five intervals.
		e.recent.add(max(0, min(0.8, 1-d.total/enough)), d)
		tail := e.recent.quantile(0.99)*target - e.recent.mean()
		if !e.known {
			e.known, e.tail = true, tail
		}
		e.tail += smoothing(length, e.period) * (tail - e.tail)
	}
	median := d.quantile(0.5)*target - d.mean()
	return max(0, mean+median), max(0, mean+e.tail)
}
