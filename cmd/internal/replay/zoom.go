package replay

import (
	"math"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// zoom finds the window of a key with the most refusals, and follows the bucket in it.
//
// Times are in nanoseconds since 1970.
type zoom struct {
	latest         int64   // the latest time of a decision
	own            int64   // the own time of the bucket: a refusal does not move it
	level          float64 // the tokens at that time
	present, worst window  // worst has the most refusals of the windows before the present one
}

// window has the decisions on a key in an interval.
type window struct {
	start            int64
	granted, refused uint64
	steps            []step // in the order of time
}

// step has the decisions in a small part of a window.
type step struct {
	first, last   int64   // the times of the first and the last decision
	before, after float32 // the tokens before the first and after the last
	refused       uint32  // the number of refusals
}

// maxSteps is how many steps a window has at most. A step of a window of a minute is half a second
// long, so logs in whole seconds lose nothing.
const maxSteps = 128

// emptied returns a zoom on a full bucket that reuses the memory of z.
func (z *zoom) emptied() zoom {
	return zoom{
		level:   math.Inf(1),
		present: window{steps: z.present.steps[:0]}, worst: window{steps: z.worst.steps[:0]},
	}
}

// mostRefused returns the window with the most refusals, the earliest of several.
func (z *zoom) mostRefused() *window {
	if z.present.refused > z.worst.refused {
		return &z.present
	}
	return &z.worst
}

// begin begins a window at a time.
func (z *zoom) begin(ns int64) {
	if z.present.refused > z.worst.refused {
		z.present, z.worst = z.worst, z.present
	}
	z.present = window{start: ns, steps: z.present.steps[:0]}
}

// lens has what the zooms under a limit share.
type lens struct {
	burst float64
	rate  float64 // tokens a nanosecond
	width int64   // of a window, in nanoseconds
}

// newLens returns a lens with windows as long as an empty bucket needs to fill, at least a minute
// and at most a century.
func newLens(r Rate, b Burst) *lens {
	const century = 100 * 365 * day
	l := &lens{burst: float64(b), rate: float64(r.Tokens) / float64(r.Per)}
	l.width = int64(min(max(l.burst/l.rate, float64(time.Minute)), float64(century)))
	return l
}

// add adds a decision at a time. A late decision is drawn at the latest time.
//
// A window begins with the first request after the window before. Until the first refusal, it
// begins again with each request that finds a full bucket, because nothing before such a request
// matters.
func (l *lens) add(z *zoom, ns int64, cost float64, d tb.Decision) {
	z.latest = max(ns, z.latest)
	before, after := l.decide(z, ns, cost, d)
	ns = z.latest
	w := &z.present
	if len(w.steps) == 0 || ns-w.start >= l.width || w.refused == 0 && before >= l.burst {
		z.begin(ns)
	}
	slot := func(ns int64) int64 { return (ns - w.start) / (l.width/maxSteps + 1) }
	last := len(w.steps) - 1
	if last < 0 || slot(w.steps[last].first) != slot(ns) {
		w.steps = append(w.steps, step{first: ns, before: float32(before)})
		last++
	}
	s := &w.steps[last]
	s.last, s.after = ns, float32(after)
	if d.Allowed {
		w.granted++
	} else {
		w.refused++
		s.refused++
	}
}

// decide follows a bucket over a decision, and returns its tokens before and after, refilled to the
// latest time. The whole tokens are in the decision. The fraction follows from the rate.
func (l *lens) decide(z *zoom, ns int64, cost float64, d tb.Decision) (before, after float64) {
	own := max(ns, z.own)
	before = l.refilled(z.level, own-z.own)
	after = before
	if d.Allowed {
		after -= cost
	}
	whole := float64(d.Remaining)
	exact := min(max(after, whole), whole+1)
	before += exact - after
	if d.Allowed {
		z.own, z.level = own, exact
	}
	return l.refilled(before, z.latest-own), l.refilled(exact, z.latest-own)
}

// refilled returns the tokens of a bucket that had a level some nanoseconds before.
func (l *lens) refilled(level float64, ns int64) float64 {
	return min(l.burst, level+l.rate*float64(ns))
}
