package redis

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"
)

const (
	// A trip takes along at most this many buckets and items, so that it does not keep the server for
	// long: a bucket takes 3 µs of the server's time (BenchmarkServer), and a further item about a
	// tenth of that.
	maxBuckets = 32
	maxItems   = 128

	// maxShared is the most trips under way that take several buckets along. Calls beyond wait for
	// the next one. With more trips each of them has fewer buckets, and costs the server more. With
	// fewer trips a call waits longer.
	maxShared = 8

	// maxInFlight is the most commands that are under way. When a server does not answer, no more
	// commands than these wait in the client, whose queue does not look at a context, and no more
	// than these reach the server when it comes back.
	maxInFlight = 256
)

// queue is the calls on one bucket. It is ready, or aboard of a trip.
type queue struct {
	node      *node
	key, name string
	waiting   []*call // in the order in which they came
	aboard    []*call
	layout    *layout // of the calls aboard
	resets    uint64  // of denials, when the trip was sent
	next      *queue  // that is ready
}

// trips has the calls that are not decided.
type trips struct {
	mu       sync.Mutex
	queues   map[string]*queue // by key; nil if each call makes a trip
	shared   bool              // a trip may take several buckets along
	shuttles int               // goroutines that make trips
	starting bool              // a shuttle will soon take the queues that are ready

	first, last    *queue // that are ready
	oldest, newest *call
	timer          *time.Timer // of the oldest call's timeout
	watched        bool        // the timer runs
	graced         bool        // for a time of grace
}

var (
	queuePool = sync.Pool{New: func() any { return new(queue) }}
	tripPool  = sync.Pool{New: func() any { return new(trip) }}
)

// join makes c wait for the next trip on key. If none is under way, one departs at once.
func (l *shared) join(key string, c *call) error {
	s := &l.trips
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[key]
	if l.closed.Load() {
		return ErrClosed
	}
	if q == nil {
		q = queuePool.Get().(*queue)
		q.node, q.key, q.name = c.node, key, c.name
		if l.tag == nil {
			q.name = l.name(key)
		}
		if s.queues != nil {
			s.queues[key] = q
		}
		s.makeReady(q)
		l.dispatch()
	}
	q.waiting = append(q.waiting, c)
	s.add(c)
	l.watch(c.timeout - l.timeout.Microseconds())
	return nil
}

// dispatch starts a shuttle, unless another one takes the next queue that is ready, or as many
// commands as possible are under way: then the first that ends dispatches. The lock of trips is
// held.
func (l *shared) dispatch() {
	s := &l.trips
	if s.shared && (s.starting || s.shuttles >= maxShared) {
		return
	}
	select {
	case l.inFlight <- struct{}{}:
		s.shuttles++
		s.starting = true
		go l.shuttle() // the client may not return in time
	default:
	}
}

// release gives back a place in flight, to a queue that is ready if there is one.
func (l *shared) release() {
	<-l.inFlight
	l.trips.mu.Lock()
	defer l.trips.mu.Unlock()
	if l.trips.first != nil {
		l.dispatch()
	}
}

// reserve takes one of the places in flight, as soon as there is one.
func (l *shared) reserve(ctx context.Context) error {
	select {
	case l.inFlight <- struct{}{}:
	case <-ctx.Done():
		return contextError(ctx.Err())
	}
	if l.closed.Load() {
		l.release()
		return ErrClosed
	}
	return nil
}

// shuttle makes trips as long as calls wait for them.
func (l *shared) shuttle() {
	t := tripPool.Get().(*trip)
	// Callers that are about to run may share the trip: those that were running when the first one
	// came, and those that a shared trip has just decided. With 16 callers on as many keys the first
	// makes 0.23 trips a call of 0.52, and with 64 callers on a key the second 0.022 of 0.034
	// (BenchmarkAllow in benchmarks/redis).
	runtime.Gosched()
	for l.board(t) {
		l.travel(t)
		if t.calls > 1 {
			runtime.Gosched()
		}
	}
	tripPool.Put(t)
	l.release()
}

// board lets the calls that wait into the next trip. If none waits, it reports false.
func (l *shared) board(t *trip) bool {
	s := &l.trips
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range t.queues {
		if len(q.waiting) > 0 {
			s.makeReady(q)
			continue
		}
		if s.queues != nil {
			delete(s.queues, q.key)
		}
		queuePool.Put(q)
	}
	t.queues = t.queues[:0]
	s.starting = false
	most := 1
	if s.shared {
		most = maxBuckets
	}
	for items := 0; items < maxItems && len(t.queues) < most && s.first != nil; {
		q := s.first
		n := q.board(maxItems - items)
		if n == 0 && len(q.waiting) > 0 { // its next call has more items than are left
			break
		}
		s.first = q.next
		q.next = nil
		items += n
		t.queues = append(t.queues, q)
	}
	if len(t.queues) == 0 {
		s.shuttles--
		return false
	}
	if s.first != nil && s.shared {
		l.dispatch() // this shuttle will return
	}
	return true
}

// board lets calls that wait aboard, which have one layout and up to so many items. It returns the
// number of items.
func (q *queue) board(most int) (items int) {
	n := 0
	for _, c := range q.waiting {
		if c.place == waiting {
			if items > 0 && c.layout != q.layout || items+len(c.items) > most {
				break
			}
			q.layout = c.layout
			c.place = aboard
			items += len(c.items)
			q.aboard = append(q.aboard, c)
		}
		n++
	}
	q.waiting = slices.Delete(q.waiting, 0, n)
	return items
}

// makeReady is called with the lock held.
func (s *trips) makeReady(q *queue) {
	if s.first == nil {
		s.first = q
	} else {
		s.last.next = q
	}
	s.last = q
}
