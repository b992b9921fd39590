package suggest

import (
	"math"
	"slices"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Collector finds what each client of a log needs at each of several rates. The clients have the
// numbers from 0 on. The requests come in the order of their times. It is not safe for concurrent
// use.
type Collector struct {
	clocks   []clock
	slowest  float64   // pace of all clocks
	states   []state   // by client
	rows     [][]curve // of clients whose buckets differ: a curve for each rate
	requests uint64

	timed bool // whether times are kept
	kept  []*kept

	start, now int64     // the times of the first request and of this one, in ns since 1970
	shown      []reading // of each clock at now; nil before the first request
}

// state is what the requests of a client need so far. Its zero value has no request.
type state struct {
	latest int64 // the time of the latest request, in ns since 1970
	alike  curve // of all rates, as long as their buckets lack the same
}

// New returns an empty Collector. The capacities of the rates are not used. If timed is false, the
// times of requests are not kept, and so refused requests are not counted.
func New(rates []tb.Limit, timed bool) *Collector {
	c := &Collector{timed: timed, slowest: math.MaxFloat64}
	for _, l := range rates {
		c.clocks = append(c.clocks, newClock(l))
		c.slowest = min(c.slowest, c.clocks[len(c.clocks)-1].pace)
	}
	return c
}

// Add adds a request of a client at a time, in ns since 1970.
func (c *Collector) Add(client uint32, t int64) {
	c.requests++
	if c.timed {
		c.keepTime(client, t)
	}
	c.take(client, t, 1)
}

// take takes what a client needs at a time: a token for each of its requests then.
func (c *Collector) take(client uint32, t int64, tokens uint64) {
	c.read(t)
	if n := int(client) + 1 - len(c.states); n > 0 {
		c.states = append(c.states, make([]state, n)...)
	}
	s := &c.states[client]
	switch {
	case s.alike.need == 0 || t == s.latest:
	case s.alike.row > 0:
		c.supply(s)
	case float64(t-s.latest)*c.slowest > float64(int64(s.alike.deficit)): // all are full
		s.alike.deficit = 0
	default:
		c.rows = append(c.rows, slices.Repeat([]curve{s.alike}, len(c.clocks)))
		s.alike.row = uint32(len(c.rows))
		c.supply(s)
	}
	s.latest = t
	if s.alike.row == 0 {
		if s.alike.add(tokens) {
			s.alike.raise(0) // whole tokens, which no unit is too coarse for
		}
		return
	}
	row := c.rows[s.alike.row-1]
	for i := range row {
		if row[i].add(tokens) {
			row[i].raise(c.shown[i].units)
		}
	}
}

// supply supplies the buckets of a client with what is due since its latest request.
func (c *Collector) supply(s *state) {
	elapsed := float64(c.now - s.latest)
	row := c.rows[s.alike.row-1]
	for i := range row {
		cv, clock := &row[i], &c.clocks[i]
		if elapsed*clock.pace > float64(int64(cv.deficit)) { // nearly always at high rates
			cv.deficit = 0
		} else {
			cv.deficit -= min(cv.deficit, c.shown[i].since(clock.at(s.latest-c.start), 1))
		}
	}
}

// maxTimes is how many times are kept at most, which takes about 50 MB, and as much again to sort
// them by client. No refused requests are counted in a longer log.
const maxTimes = 1 << 22

// kept has the times and the clients of some requests. A slice of all would be copied as it grows.
type kept struct {
	n       int
	times   [1 << 12]int64
	clients [1 << 12]uint32
}

// keepTime keeps the time of a request, or drops all times if there are too many.
func (c *Collector) keepTime(client uint32, t int64) {
	if c.requests > maxTimes {
		c.kept, c.timed = nil, false
		return
	}
	if n := len(c.kept); n == 0 || c.kept[n-1].n == len(kept{}.times) {
		c.kept = append(c.kept, new(kept))
	}
	k := c.kept[len(c.kept)-1]
	k.times[k.n], k.clients[k.n] = t, client
	k.n++
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
	// need is the least capacity that has room for all deficits so far. It is 0 before a request.
	need uint32
	// row is the number of the row that has taken the place of the curve of all rates, or 0.
	row uint32
}

// add takes tokens from the bucket. It reports whether the need must be raised.
func (c *curve) add(tokens uint64) (higher bool) {
	c.deficit += tokens * finest
	return c.deficit > uint64(c.need)*finest
}

// raise raises the need to the deficit, when the clock shows some units beyond whole tokens.
func (c *curve) raise(units uint64) {
	c.need = max(c.need, uint32(needOf(c.deficit, units)))
}
