package suggest

import (
	"math"
	"slices"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Collector finds what each client of a log needs at each of several rates. The requests come in
// the order of their times. It is not safe for concurrent use.
type Collector struct {
	clocks   []clock
	slowest  float64 // pace of all clocks
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
	c := &Collector{cost: cost, timed: cost > 0, slowest: math.MaxFloat64}
	for _, l := range rates {
		c.clocks = append(c.clocks, newClock(l))
		c.slowest = min(c.slowest, c.clocks[len(c.clocks)-1].pace)
	}
	return c
}

// Client is what the requests of a client need. Its zero value has no request. Visits is what the
// client asks for, in the whole log; the caller fills it in.
type Client struct {
	Visits

	latest int64   // the time of the latest request, in ns since 1970
	times  []int64 // of all requests, if they are kept
	alike  curve   // of all rates, as long as their buckets lack the same
	curves []curve // of each rate, from then on
}

// Add adds a request of a client at a time, in ns since 1970. The cost is in tokens, above 0.
func (c *Collector) Add(cl *Client, t int64, cost uint64) {
	c.read(t)
	cost = min(cost, None)
	c.requests++
	if c.timed {
		c.keepTime(cl, t)
	}
	switch {
	case cl.alike.need == 0:
		c.clients = append(c.clients, cl)
	case t == cl.latest:
	case cl.curves != nil:
		c.supply(cl)
	case float64(t-cl.latest)*c.slowest > float64(int64(cl.alike.deficit)): // all are full
		cl.alike.deficit = 0
	default:
		cl.curves = slices.Repeat([]curve{cl.alike}, len(c.clocks))
		c.supply(cl)
	}
	cl.latest = t
	if cl.curves == nil && cl.alike.add(cost) {
		cl.alike.raise(0) // whole tokens, which no unit is too coarse for
	}
	for i := range cl.curves {
		if cl.curves[i].add(cost) {
			cl.curves[i].raise(c.shown[i].units)
		}
	}
}

// supply supplies the buckets of a client with what is due since its latest request.
func (c *Collector) supply(cl *Client) {
	elapsed := float64(c.now - cl.latest)
	for i := range cl.curves {
		cv, clock := &cl.curves[i], &c.clocks[i]
		if elapsed*clock.pace > float64(int64(cv.deficit)) { // nearly always at high rates
			cv.deficit = 0
		} else {
			cv.deficit -= min(cv.deficit, c.shown[i].since(clock.at(cl.latest-c.start), 1))
		}
	}
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

// curve is one point of a client's arrival curve: the greatest excess of its requests over a rate,
// in any interval.
type curve struct {
	// deficit is what the bucket lacks after the latest request, in the finest units. Nothing was
	// refused.
	deficit uint64
	// need is the least capacity that has room for all deficits so far.
	need uint32
}

// add takes a cost in tokens from the bucket. It reports whether the need must be raised.
func (c *curve) add(cost uint64) (higher bool) {
	c.deficit += cost * finest
	return c.deficit > uint64(c.need)*finest
}

// raise raises the need to the deficit, when the clock shows some units beyond whole tokens.
func (c *curve) raise(units uint64) {
	c.deficit = min(c.deficit, most)
	c.need = max(c.need, uint32(needOf(c.deficit, units)))
}
