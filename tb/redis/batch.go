package redis

import (
	"context"
	"runtime"
	"slices"
	"sync"
)

const (
	// A batch has no further call after this many buckets or items, so that it does not keep the
	// server for long: a bucket takes 3 µs (BenchmarkServer), and a further item a tenth of that.
	maxBuckets = 32
	maxItems   = 128

	// maxShared is the most batches of several buckets that are under way: see DESIGN.md here.
	maxShared = 8

	// maxInFlight is the most commands that are under way. When a server does not answer, only these
	// wait in the client, and reach the server when it comes back. In a cluster each range of slots
	// has an equal part of them, so that a master that does not answer leaves the others theirs.
	maxInFlight = 256
)

// queue is the calls on one bucket, or one call on several. It is ready, or part of a batch.
type queue struct {
	node      *node
	key, name string // of the bucket, or the first one
	buckets   int
	waiting   []*call // in the order in which they came
	batched   []*call
}

type pending struct {
	mu       sync.Mutex
	queues   map[string]*queue  // of one bucket, by key; empty if each call has a batch of its own
	flushes  int                // that are running, each with a command
	under    map[*node]int      // the queues of a node in batches
	ended    sync.WaitGroup     // when none is running
	starting bool               // a flush will soon take the queues that are ready
	met      bool               // the last call but one had company
	ready    []*queue           // in the order in which their calls came
	blocked  map[*node][]*queue // ready, and seen when their node had its part of maxInFlight
}

var (
	queuePool = sync.Pool{New: func() any { return new(queue) }}
	batchPool = sync.Pool{New: func() any { return new(batch) }}
)

// join makes c, which may have the whole timeout, wait for the next batch. On one bucket, it waits
// until none is under way. If c is alone, the caller has to call flushAlone with its batch.
func (l *shared) join(c *call, whole bool) (b *batch, err error) {
	s, p, n := &l.pending, &c.parts[0], len(c.parts)
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.closed.Load() {
		return nil, ErrClosed
	}
	var q *queue
	if n == 1 {
		q = s.queues[p.key]
	}
	meets := s.flushes > 0
	alone := !meets && !s.met && whole && l.isCalm()
	s.met = meets
	if q == nil {
		q = queuePool.Get().(*queue)
		q.node, q.key, q.name, q.buckets = c.node, p.key, p.name, n
		if q.name == "" {
			q.name = l.name(p.key)
		}
		if n == 1 && !l.alone {
			s.queues[p.key] = q
		}
		s.ready = append(s.ready, q)
		if started := l.begin(); started && !alone {
			go l.flush()
		} else {
			alone = started
		}
	}
	q.waiting = append(q.waiting, c)
	if alone { // otherwise a flush of another call may take it
		b = batchPool.Get().(*batch)
		l.collect(b)
	}
	return b, nil
}

// begin reports whether a flush has to begin. Otherwise another one takes the next queue that is
// ready: it has begun and not taken any, or as many as possible are running, which end only when no
// queue is ready. The lock of pending is held.
func (l *shared) begin() bool {
	s := &l.pending
	if l.shares() && (s.starting || s.flushes >= maxShared) || s.flushes >= maxInFlight {
		return false
	}
	s.flushes++
	s.starting = true
	s.ended.Add(1)
	return true
}

func (l *shared) shares() bool { return !l.alone && !l.isCluster() }

func (l *shared) flush() {
	b := batchPool.Get().(*batch)
	// Callers that are about to run may share the batch: with 16 callers on as many keys, there are
	// 0.23 commands a call and not 0.52. In sendAll callers come again: with 64 on a key, 0.022 and
	// not 0.034 (BenchmarkAllow in benchmarks/compare/redis).
	runtime.Gosched()
	l.sendAll(b, l.fill(b))
}

// sendAll sends b if it has calls, and further batches as long as calls wait.
func (l *shared) sendAll(b *batch, filled bool) {
	for ; filled; filled = l.fill(b) {
		l.send(context.Background(), b)
		if b.calls > 1 {
			b.wake()
			runtime.Gosched()
		}
	}
	batchPool.Put(b)
	l.pending.ended.Done()
}

// flushAlone is flush in the goroutine of a lone caller, which the client lets return
// at the timeout: then it closes the connection. Calls that have come meanwhile get a goroutine.
func (l *shared) flushAlone(b *batch) {
	ctx, cancel := context.WithTimeout(context.Background(), l.timeout)
	defer cancel()
	l.send(ctx, b)
	if l.fill(b) {
		go l.sendAll(b, true)
	} else {
		l.sendAll(b, false)
	}
}

// fill moves calls that wait into the next batch. If none waits, it reports false. The callers of
// the last batch return after it, so that their next calls do not meet a flush that has ended.
func (l *shared) fill(b *batch) bool {
	defer b.wake()
	l.pending.mu.Lock()
	defer l.pending.mu.Unlock()
	return l.collect(b)
}

// collect is fill with the lock of pending held.
func (l *shared) collect(b *batch) bool {
	s := &l.pending
	for _, q := range b.queues {
		s.under[q.node]--
		if next := s.blocked[q.node]; len(next) > 0 {
			s.ready, s.blocked[q.node] = append(s.ready, next[0]), next[1:]
		}
		if len(q.waiting) > 0 {
			s.ready = append(s.ready, q)
			continue
		}
		if s.queues[q.key] == q {
			delete(s.queues, q.key)
		}
		queuePool.Put(q)
	}
	b.queues = b.queues[:0]
	s.starting = false
	shares, most := l.shares(), 1
	if shares {
		most = maxBuckets
	}
	items, buckets, seen := 0, 0, 0
	for ; seen < len(s.ready) && items < maxItems && buckets < most; seen++ {
		q := s.ready[seen]
		if l.isCluster() && s.under[q.node] >= maxInFlight/ranges {
			s.blocked[q.node] = append(s.blocked[q.node], q)
			continue
		}
		items += q.fill(maxItems - items)
		buckets += q.buckets
		s.under[q.node]++
		b.queues = append(b.queues, q)
	}
	s.ready = slices.Delete(s.ready, 0, seen)
	if len(b.queues) == 0 {
		s.flushes--
		return false
	}
	if len(s.ready) > 0 && shares && l.begin() {
		go l.flush() // the client may not return in time
	}
	return true
}

// fill moves calls that wait and have one layout into the batch, until they have most items or
// more. It returns the number of items.
func (q *queue) fill(most int) (items int) {
	n := 0
	for _, c := range q.waiting {
		if c.stage == waiting {
			if items >= most || items > 0 && c.parts[0].layout != q.batched[0].parts[0].layout {
				break
			}
			for i := range c.parts {
				items += len(c.parts[i].items)
			}
			q.batched = append(q.batched, c)
		}
		n++
	}
	q.waiting = slices.Delete(q.waiting, 0, n)
	return items
}
