package adapt

import (
	"math/bits"
	"sync/atomic"
)

// copies is the number of copies of the counts. A request adds to any of them, so that processors
// seldom contend for one.
const copies = 8

// counts are numbers since the start of the controller.
type counts struct {
	begun   atomic.Uint64
	refused atomic.Uint64
	ended   atomic.Uint64
	failed  atomic.Uint64
	nanos   atomic.Uint64 // sum of the latencies
	latency [buckets]atomic.Uint32
	_       [64]byte // keeps the next copy out of the cache line
}

type totals struct {
	begun, refused, ended, failed, nanos uint64
	latency                              [buckets]uint32
}

func (t *totals) sum(all *[copies]counts) {
	*t = totals{}
	for i := range all {
		n := &all[i]
		t.ended += n.ended.Load() // before begun, so a request has begun if it has ended
		t.refused += n.refused.Load()
		t.failed += n.failed.Load()
		t.nanos += n.nanos.Load()
		for j := range n.latency {
			t.latency[j] += n.latency[j].Load()
		}
	}
	for i := range all {
		t.begun += all[i].begun.Load()
	}
}

func (t *totals) open() uint64 {
	if t.ended > t.begun { // a request was ended twice
		return 0
	}
	return t.begun - t.ended
}

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

func lowest(bucket int) uint64 {
	if bucket < subBuckets {
		return uint64(bucket)
	}
	shift := bucket>>subBits - 1
	return uint64(bucket-shift<<subBits) << shift
}

type distribution struct {
	weight [buckets]float64
	total  float64
	sum    float64 // of the latencies, in seconds
}

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
