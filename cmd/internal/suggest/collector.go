package suggest

import (
	"slices"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/sketch"
	"github.com/seed-181794aa/ratelimit/internal/hash"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Collector finds what each key of a log needs at each of several rates. The requests come in the
// order of their times. It is not safe for concurrent use.
type Collector struct {
	clocks   []clock
	clients  sketch.Sample[string, *Client]
	requests uint64 // of keys that were kept at the time

	timed bool   // whether clients keep the times of their requests: not if costs vary
	cost  uint64 // of each request in tokens, if costs are fixed

	start, now int64     // the times of the first request and of this one, in ns since 1970
	shown      []reading // of each clock at now; empty before the first request
}

// New returns an empty Collector of at most maxKeys keys. The capacities of the rates are not used.
// cost is the cost of every request in tokens, and 0 if costs vary or the refused requests are not
// wanted.
func New(rates []tb.Limit, cost uint64, maxKeys int) *Collector {
	c := &Collector{
		clients: sketch.NewSample[string, *Client](maxKeys, hashOf[string]),
		cost:    cost, timed: cost > 0,
	}
	for _, l := range rates {
		c.clocks = append(c.clocks, newClock(l))
	}
	return c
}

// OneIn returns of how many keys one is kept: 1 if all are.
func (c *Collector) OneIn() uint64 { return c.clients.OneIn() }

// Add adds a request of a key at a time, in ns since 1970. The cost is in tokens, above 0, and path
// is a hash of what the request asks for.
func (c *Collector) Add(key []byte, t int64, cost uint64, path uint32) {
	c.read(t)
	cl := c.clients.Values[string(key)] // does not allocate
	if cl == nil {
		if cl = c.admit(key); cl == nil {
			return
		}
	}
	c.requests++
	if c.timed {
		c.keepTime(cl, t)
	}
	last := cl.count(t, path)
	if len(cl.curves) < len(c.clocks) && !c.stayAlike(cl, last) {
		cl.curves = slices.Repeat(cl.curves, len(c.clocks))
	}
	for i := range cl.curves {
		cv, shown := &cl.curves[i], c.shown[i]
		if cost > tb.MaxCapacity {
			cv.need = None
			continue
		}
		var supplied uint64
		if last < c.now {
			supplied = shown.since(c.clocks[i].at(last-c.start), 1)
		}
		cv.add(supplied, cost*finest)
		if cv.deficit > uint64(cv.need)*finest {
			cv.need = max(cv.need, uint32(needOf(cv.deficit, shown.units)))
		}
	}
}

// maxTimes is how many times are kept at most, which takes about 50 MB. Refusals counts no requests
// of a longer log, and none of a sample.
const maxTimes = 1 << 22

// keepTime keeps the time of a request, or drops all times if there are too many.
func (c *Collector) keepTime(cl *Client, t int64) {
	if cl.times = append(cl.times, t); c.requests > maxTimes {
		c.dropTimes()
	}
}

func (c *Collector) dropTimes() {
	c.timed = false
	for _, cl := range c.clients.Values {
		cl.times = nil
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

// admit returns a new client, or nil if the key is not in the sample.
func (c *Collector) admit(key []byte) *Client {
	if !c.clients.Takes(hashOf(key)) {
		return nil
	}
	cl := &Client{Key: string(key), curves: make([]curve, 1)}
	c.clients.Put(cl.Key, cl)
	if c.timed && c.clients.OneIn() > 1 {
		c.dropTimes() // a few clients may have most requests, so a sample says nothing about them
	}
	return c.clients.Values[cl.Key]
}

func hashOf[T string | []byte](key T) uint64 { return hash.Mix(hash.Add(hash.Empty, key)) }

// stayAlike reports whether the curves of all rates, which are alike, stay so with a request of a
// client whose latest time was last: nothing was supplied to any bucket, or all buckets are full.
// Then a deficit is a sum of costs, and its need does not depend on the clocks: see DESIGN.md here.
func (c *Collector) stayAlike(cl *Client, last int64) bool {
	if last == c.now {
		return true
	}
	for i := range c.clocks {
		if c.shown[i].since(c.clocks[i].at(last-c.start), 1) < cl.curves[0].deficit {
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

// Client is a key with its requests.
type Client struct {
	Key string
	Visits
	Peak Peak
	Kind Kind // set by Result

	latest int64   // the time of the latest request, in ns since 1970
	times  []int64 // of all requests, if they are kept
	curves []curve // of each rate, or one as long as they are alike
}

// count counts a request at a time and returns the time of the one before, or the time itself if
// there is none.
func (cl *Client) count(t int64, path uint32) (last int64) {
	if last = cl.latest; cl.Requests == 0 {
		last = t
	}
	cl.latest = t
	cl.Visit(path)
	cl.Peak.Add(t / int64(time.Second))
	return last
}
