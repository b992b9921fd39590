package suggest

import (
	"slices"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Collector finds what each client of a log needs at each of several rates. The requests come in the
// order of their times. It is not safe for concurrent use.
type Collector struct {
	clocks   []clock
	clients  []*Client
	requests uint64

	timed bool   // whether clients keep the times of their requests: not if costs vary
	cost  uint64 // of each request in tokens, if costs are fixed

	start, now int64     // the times of the first request and of this one, in ns since 1970
	shown      []reading // of each clock at now; empty before the first request
}

// New returns an empty Collector. The capacities of the rates are not used. cost is the cost of
// every request in tokens, and 0 if costs vary or the refused requests are not wanted.
func New(rates []tb.Limit, cost uint64) *Collector {
	c := &Collector{cost: cost, timed: cost > 0}
	for _, l := range rates {
		c.clocks = append(c.clocks, newClock(l))
	}
	return c
}

// Client is what the requests of a client need. Its zero value has no request. Visits is what the
// client asks for, in the whole log; the caller fills it in.
type Client struct {
	Visits

	latest int64   // the time of the latest request, in ns since 1970
	times  []int64 // of all requests, if they are kept
	curves []curve // of each rate, or one as long as they are alike
}

// Add adds a request of a client at a time, in ns since 1970. The cost is in tokens, above 0.
func (c *Collector) Add(cl *Client, t int64, cost uint64) {
	c.read(t)
	if cl.curves == nil {
		c.clients = append(c.clients, cl)
		cl.latest, cl.curves = t, make([]curve, 1)
	}
	c.requests++
	if c.timed {
		c.keepTime(cl, t)
	}
	if len(cl.curves) < len(c.clocks) && !c.stayAlike(cl) {
		cl.curves = slices.Repeat(cl.curves, len(c.clocks))
	}
	for i := range cl.curves {
		cv, shown := &cl.curves[i], c.shown[i]
		if cost > tb.MaxCapacity {
			cv.need = None
			continue
		}
		var supplied uint64
		if cl.latest < c.now {
			supplied = shown.since(c.clocks[i].at(cl.latest-c.start), 1)
		}
		cv.add(supplied, cost*finest)
		if cv.deficit > uint64(cv.need)*finest {
			cv.need = max(cv.need, uint32(needOf(cv.deficit, shown.units)))
		}
	}
	cl.latest = t
}

// maxTimes is how many times are kept at most, which takes about 50 MB. Refusals counts no requests
// of a longer log.
const maxTimes = 1 << 22

// keepTime keeps the time of a request, or drops all times if there are too many.
func (c *Collector) keepTime(cl *Client, t int64) {
	if cl.times = append(cl.times, t); c.requests > maxTimes {
		c.timed = false
		for _, cl := range c.clients {
			cl.times = nil
		}
	}
}

// read reads the clocks at the time of a request.
func (c *Collector) read(t int64) {
	switch {
	case c.shown == nil:
		c.start, c.shown = t, make([]reading, len(c.clocks))
	case t == c.now:
		return
	}
	c.now = t
	for i := range c.clocks {
		c.shown[i] = c.clocks[i].at(t - c.start)
	}
}

// stayAlike reports whether the curves of all rates, which are alike, stay so with a request of a
// client now: nothing was supplied to any bucket, or all buckets are full. Then a deficit is a sum
// of costs, and its need does not depend on the clocks: see DESIGN.md here.
func (c *Collector) stayAlike(cl *Client) bool {
	if cl.latest == c.now {
		return true
	}
	for i := range c.clocks {
		if c.shown[i].since(c.clocks[i].at(cl.latest-c.start), 1) < cl.curves[0].deficit {
			return false
		}
	}
	return true
}

// curve is one point of a client's arrival curve: the greatest excess of its requests over a rate,
// in any interval.
type curve struct {
	// deficit is what the bucket lacks after the latest request, in the finest units. Nothing was
	// refused.
	deficit uint64
	// need is the least capacity that has room for all deficits so far.
	need uint32
}

// add takes a cost from the bucket after a supply, both in units.
func (c *curve) add(supplied, cost uint64) {
	c.deficit = min(c.deficit-min(c.deficit, supplied)+cost, most)
}
