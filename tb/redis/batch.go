package redis

import (
	"runtime"
	"sync"
	"time"
)

// maxCosts is the most costs that a trip takes along, so that no trip keeps a server for long.
const maxCosts = 128

// maxInFlight is the most keys that have a trip under way. When a server does not answer, no more
// commands than these wait in the client, whose queue does not look at a context, and no more than
// these reach the server when it comes back.
const maxInFlight = 256

// call is costs that a caller wants from one bucket. It belongs to its caller, and to its trip from
// join until it is decided. If the caller leaves it aboard, it belongs to the trip. It is reused.
type call struct {
	costs    []uint64 // none for a removal
	deadline int64    // local time in µs
	late     uint64   // the deadline that the script got
	timer    *time.Timer
	trip     *trip

	place      place // with the links, under the lock of trips
	prev, next *call // while it waits

	before  state // the bucket before the costs
	err     error
	decided chan struct{} // receives when before and err are valid
}

type place int

const (
	waiting place = iota
	aboard
	arrived
	left
)

// trip makes the trips on one bucket, one after another, for all callers that meet. It is reused.
type trip struct {
	key, name   string
	first, last *call // of those that wait, in the order in which they came
	calls       []*call
	items       []item
	args        [2]string
}

// trips has the trips that are under way, by key. Without a map, each call has a trip of its own.
type trips struct {
	mu    sync.Mutex
	byKey map[string]*trip
}

var (
	callPool = sync.Pool{New: func() any {
		timer := time.NewTimer(time.Hour)
		timer.Stop()
		return &call{decided: make(chan struct{}, 1), timer: timer}
	}}
	tripPool = sync.Pool{New: func() any { return new(trip) }}
)

func newCall(costs []uint64, deadline int64) *call {
	c := callPool.Get().(*call)
	c.costs, c.deadline = append(c.costs[:0], costs...), deadline
	return c
}

func (c *call) recycle() {
	c.trip, c.place, c.err = nil, waiting, nil
	callPool.Put(c)
}

// join makes c wait for the next trip on key. If none is under way, one departs at once.
func (l *Limiter) join(key string, c *call) error {
	l.trips.mu.Lock()
	defer l.trips.mu.Unlock()
	if len(c.costs) > 0 {
		if t := l.trips.byKey[key]; t != nil {
			t.push(c)
			return nil
		}
	}
	if err := l.reserve(); err != nil {
		return err
	}
	t := tripPool.Get().(*trip)
	t.key, t.name = key, l.name(key)
	t.push(c)
	if l.trips.byKey != nil && len(c.costs) > 0 {
		l.trips.byKey[key] = t
	}
	go l.shuttle(t) // the client may not return in time
	return nil
}

// shuttle makes trips as long as calls wait for them.
func (l *Limiter) shuttle(t *trip) {
	for l.board(t) {
		shared := len(t.calls) > 1
		l.travel(t)
		if shared {
			// The callers that were just decided may come again at once, and share the next trip. With
			// 64 callers on a key, this makes 0.019 trips a call of 0.049.
			runtime.Gosched()
		}
	}
	<-l.inFlight
}

// board lets the calls that wait into the next trip, up to maxCosts costs. If none waits, it
// reports false, and t is done.
func (l *Limiter) board(t *trip) bool {
	l.trips.mu.Lock()
	defer l.trips.mu.Unlock()
	costs := 0
	for c := t.first; c != nil && (costs == 0 || costs+len(c.costs) <= maxCosts); c = t.first {
		t.unlink(c)
		c.place = aboard
		t.calls = append(t.calls, c)
		costs += max(1, len(c.costs))
	}
	if len(t.calls) > 0 {
		return true
	}
	if l.trips.byKey[t.key] == t {
		delete(l.trips.byKey, t.key)
	}
	tripPool.Put(t)
	return false
}

// arrive decides c. The lock of trips is held.
func (c *call) arrive(err error) {
	if c.place == left {
		c.recycle()
		return
	}
	c.place, c.err = arrived, err
	c.decided <- struct{}{}
}

// stay keeps the calls aboard whose callers still wait at a local time. It reports whether there
// are any.
func (l *Limiter) stay(t *trip, local int64) bool {
	l.trips.mu.Lock()
	defer l.trips.mu.Unlock()
	n := 0
	for _, c := range t.calls {
		switch {
		case c.place == left:
			c.recycle()
		case c.deadline <= local:
			c.arrive(timedOut())
		default:
			t.calls[n] = c
			n++
		}
	}
	t.calls = t.calls[:n]
	return n > 0
}

// leave takes c out of its trip. It reports false if c is decided, or will be in a moment.
func (l *Limiter) leave(c *call) bool {
	l.trips.mu.Lock()
	defer l.trips.mu.Unlock()
	switch c.place {
	case waiting:
		c.trip.unlink(c)
		c.recycle()
	case aboard:
		c.place = left
	default:
		return false
	}
	return true
}

func (t *trip) push(c *call) {
	c.trip, c.prev = t, t.last
	if t.last == nil {
		t.first = c
	} else {
		t.last.next = c
	}
	t.last = c
}

func (t *trip) unlink(c *call) {
	if c.prev == nil {
		t.first = c.next
	} else {
		c.prev.next = c.next
	}
	if c.next == nil {
		t.last = c.prev
	} else {
		c.next.prev = c.prev
	}
	c.prev, c.next = nil, nil
}
