package adapt

import (
	"math"
	"math/bits"
	"time"
)

// A latency is counted in steps of 1/256 of the target. Each number of steps below 16 has a
// bucket. Above, each power of two has 16 buckets, so a bucket is at most 1/16 as wide as its
// least latency. All latencies from 64 targets on share the last bucket.
const (
	stepsPerTarget = 256
	maxTargets     = 64
	maxSteps       = stepsPerTarget * maxTargets // 2¹⁴
	subBits        = 4
	subBuckets     = 1 << subBits
	buckets        = (14-subBits+1)*subBuckets + 1
)

// bucketOf returns the bucket of a latency in steps, at most maxSteps.
func bucketOf(steps uint64) int {
	if steps < subBuckets {
		return int(steps)
	}
	shift := bits.Len64(steps) - 1 - subBits
	return shift<<subBits + int(steps>>shift)
}

// lowest returns the least number of steps in a bucket.
func lowest(bucket int) uint64 {
	if bucket < subBuckets {
		return uint64(bucket)
	}
	shift := bucket>>subBits - 1
	return uint64(bucket-shift<<subBits) << shift
}

// distribution is a weighted count of latencies.
type distribution struct {
	weight [buckets]float64
	total  float64
	sum    float64 // of the latencies, in seconds
}

// add scales d and adds another distribution.
func (d *distribution) add(scale float64, other *distribution) {
	for i := range d.weight {
		d.weight[i] = d.weight[i]*scale + other.weight[i]
	}
	d.total = d.total*scale + other.total
	d.sum = d.sum*scale + other.sum
}

func (d *distribution) mean() float64 { return d.sum / d.total }

// quantile returns the latency, in targets, that a share q of the requests does not exceed. It
// interpolates within a bucket.
func (d *distribution) quantile(q float64) float64 {
	rank := q * d.total
	for i, w := range d.weight[:buckets-1] {
		if w > 0 && rank <= w {
			low, high := float64(lowest(i)), float64(lowest(i+1))
			return (low + (high-low)*rank/w) / stepsPerTarget
		}
		rank -= w
	}
	return maxTargets
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
