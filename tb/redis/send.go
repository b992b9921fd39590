package redis

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/redis/rueidis"
)

// batch is what one command takes along: the calls on one bucket or several.
type batch struct {
	queues  []*queue // all with calls in the batch
	entries []entry  // of the command
	calls   int      // in the command
	woken   []*call  // decided, by callers that wait

	names    []string // of the entries
	argument []byte
}

// entry is a bucket in a command. Calls on several buckets have an entry for each of them, and then
// the same bucket may have several entries.
type entry struct {
	calls []*call
	part  int // of each of the calls
	sight sight
	most  uint64 // of the costs to take that a full bucket can pay
	err   *Error
	known bool // the bucket before
}

// send sends a batch. It never repeats a command that the server may have executed. The server
// ignores items whose deadline, by its clock, has passed. If their callers still wait, a clock was
// set, and the second command knows it better. While a cluster moves a slot, it executes nothing on
// several keys of which only some have moved. Then send tries again every millisecond. A server
// that does not answer within the timeout has failed, also if its callers have left before.
func (l *shared) send(ctx context.Context, b *batch) {
	n, began := b.queues[0].node, l.local()
	overdue := time.AfterFunc(l.timeout, func() { l.observe(n, began, timedOut()) })
	defer overdue.Stop()
	failure := timedOut()
	for stale := 0; stale < 2; {
		sent := l.local()
		if !l.prune(b, sent) {
			return
		}
		r, err := l.command(ctx, b, &n.offset)
		received := l.local()
		if err != nil {
			if e, ok := rueidis.IsRedisErr(err.Err); ok && e.IsTryAgain() {
				time.Sleep(time.Millisecond)
				continue
			}
			l.observe(n, sent, err)
			failure = err
			break
		}
		n.offset.learn(sent, received, int64(r.now))
		if l.deliver(b, r, sent, received) {
			return
		}
		stale++
	}
	l.finish(b, func(*call) (bool, error) { return true, failure })
}

// prune keeps the calls whose callers still wait at a local time, and reports whether there are
// any. The callers of the others return before the next command.
func (l *shared) prune(b *batch, local int64) bool {
	l.finish(b, func(c *call) (bool, error) {
		return c.stage == left || c.deadline <= local, timedOut()
	})
	b.wake()
	b.entries, b.names, b.calls = b.entries[:0], b.names[:0], 0
	for _, q := range b.queues {
		b.calls += len(q.batched)
		for i := 0; len(q.batched) > 0 && i < q.buckets; i++ {
			b.names = append(b.names, cmp.Or(q.batched[0].parts[i].name, q.name))
			b.entries = append(b.entries, entry{calls: q.batched, part: i})
		}
	}
	return b.calls > 0
}

// command sends the items of the calls. Before the first reply of a server, they have no deadline,
// so that the first call needs no other trip.
func (l *shared) command(ctx context.Context, b *batch, o *offset) (reply, *Error) {
	known := o.isKnown()
	b.argument = b.argument[:0]
	for i := range b.entries {
		e := &b.entries[i]
		first := &e.calls[0].parts[e.part]
		start := len(b.argument)
		b.argument = append(b.argument, first.layout.header[:]...)
		if e.part+1 < len(e.calls[0].parts) {
			b.argument[start] += joined
		}
		count := len(b.argument)
		b.argument = append(b.argument, 0)
		gives := false
		for _, c := range e.calls {
			p := &c.parts[e.part]
			if e.part == 0 {
				if c.late = noDeadline; known && !p.items[0].corrects() {
					c.late = o.server(c.deadline)
				}
			}
			for j := range p.items {
				if it := &p.items[j]; it.until > 0 {
					it.hold = uint64(max(0, it.until-l.local()))
				}
				b.argument = appendItem(b.argument, &p.items[j], c.late)
				gives = gives || p.items[j].givesBack()
			}
			b.argument[count] += byte(len(p.items))
		}
		resets := first.limiter.denials.of(first.key)
		if gives { // no call may be refused by what was seen before
			resets.Add(1)
			defer resets.Add(resetEnds)
		}
		e.sight.resets = resets.Load()
	}
	return l.run(ctx, known, b.names, b.argument)
}

// deliver decides the calls that were in time, from the buckets before them. It reports whether
// these are all calls.
func (l *shared) deliver(b *batch, r reply, sent, received int64) (all bool) {
	inTime, lost := false, false
	for i := range b.entries {
		e := &b.entries[i]
		m := e.calls[0].parts[e.part].layout
		var found []byte
		found, e.err = r.bucket(i)
		e.known = found[0] != unread && found[0] != foreign
		lost = lost || e.err != nil
		e.sight = sight{m.found(found, r.now), m, sent, received, e.sight.resets}
		for _, c := range e.calls {
			if e.part == 0 {
				c.granted, c.held, c.lost = true, false, nil
			}
			if r.now <= c.late {
				inTime = true
				e.apply(c)
			}
		}
	}
	if !inTime {
		l.stale.Add(1)
		return false
	}
	for i := range b.entries { // before a caller knows
		b.entries[i].remember()
	}
	n := b.queues[0].node
	l.observe(n, sent, r.failure)
	if !lost {
		l.decides()
	}
	all = true
	l.finish(b, func(c *call) (bool, error) {
		if r.now > c.late {
			all = false
			return false, nil
		}
		if c.stage == left && c.lost == nil && c.granted {
			l.counts.abandoned.Add(1)
		}
		return true, c.lost
	})
	return all
}

// apply does to the bucket what the script has done for a call, if it has not refused another part.
// The last part has the error of all writes. If a part was refused, only holds had to be written.
func (e *entry) apply(c *call) {
	p, s := &c.parts[e.part], &e.sight.state
	p.before = *s
	for i := range p.items {
		before, it := *s, &p.items[i]
		o := p.layout.apply(s, it)
		c.granted = c.granted && (i > 0 || o.Allowed)
		c.held = c.held || s.change != before.change
		writes := c.held || *s != before && (c.granted || len(c.parts) == 1)
		if e.err != nil && (!e.known || writes) {
			c.lost = e.err
		}
		if need := it.needs(); it.kind != kindLook && need <= p.layout.capacity {
			e.most = max(e.most, need)
		}
	}
	if s.held { // it cannot pay a unit
		e.most = max(e.most, 1)
	}
}

func (e *entry) remember() {
	c := e.calls[0]
	p := &c.parts[e.part]
	if len(c.parts) > 1 && !c.granted && e.sight.change == p.before.change { // no hold either
		e.sight.state = p.before
	}
	if e.sight.held { // its tokens are lost
		p.limiter.leases.forget(p.key)
	}
	if e.err == nil && c.lost == nil {
		p.limiter.remember(p.key, e.sight, e.most)
	}
}

// finish decides the calls for which decide returns true, with its error. Their callers return
// after wake. decide is called with the lock of pending held.
func (l *shared) finish(b *batch, decide func(*call) (bool, error)) {
	l.pending.mu.Lock()
	for _, q := range b.queues {
		q.batched = slices.DeleteFunc(q.batched, func(c *call) bool {
			done, err := decide(c)
			if done && c.stage != left {
				c.stage, c.err = decided, err
				b.woken = append(b.woken, c)
			}
			return done
		})
	}
	l.pending.mu.Unlock()
}

// wake lets the callers return whose calls were decided. It must not hold the lock, which they need
// for their next call.
func (b *batch) wake() {
	for _, c := range b.woken {
		c.decided <- struct{}{}
	}
	clear(b.woken)
	b.woken = b.woken[:0]
}
