package redis

import (
	"slices"
	"time"
)

// batch is what one command takes along: the calls on one bucket or several.
type batch struct {
	all    bool     // all items are granted, or none
	queues []*queue // all with calls in the batch
	sent   []*queue // those with calls in the command
	calls  int      // in the command
	woken  []*call

	names    []string
	argument []byte
}

// send sends a batch. It never repeats a command that the server may have executed. The server
// ignores items whose deadline, by its clock, has passed. If their callers still wait, a clock was
// set, or this is the first command, and the second one knows the server's clock better. While a
// cluster moves a slot, it executes nothing on several keys of which only some have moved. Then
// send tries again every millisecond.
func (l *shared) send(b *batch) {
	n := b.queues[0].node
	for stale := 0; stale < 2; {
		sent := l.local()
		if !l.prune(b, sent) {
			return
		}
		r, err := l.command(b, &n.offset)
		if isTryAgain(err) {
			time.Sleep(time.Millisecond)
			continue
		}
		received := l.local()
		if err != nil {
			l.observe(n, sent, healthOf(err), err)
			l.fail(b, err)
			return
		}
		n.offset.learn(sent, received, int64(r.now))
		if l.deliver(b, r, sent, received) {
			return
		}
		stale++
	}
	l.fail(b, timedOut())
}

// prune keeps the calls whose callers still wait at a local time, all or none if the batch is so,
// and reports whether there are any.
func (l *shared) prune(b *batch, local int64) bool {
	b.sent, b.calls = b.sent[:0], 0
	ends := func(c *call) bool { return c.stage == left || c.deadline <= local }
	if b.all {
		l.pending.mu.Lock()
		ended := slices.ContainsFunc(b.queues, func(q *queue) bool {
			return slices.ContainsFunc(q.batched, ends)
		})
		l.pending.mu.Unlock()
		ends = func(*call) bool { return ended }
	}
	l.finish(b, func(c *call) (bool, error) { return ends(c), timedOut() })
	for _, q := range b.queues {
		if len(q.batched) > 0 {
			b.sent = append(b.sent, q)
			b.calls += len(q.batched)
		}
	}
	return len(b.sent) > 0
}

// command sends the items of the calls.
func (l *shared) command(b *batch, o *offset) (reply, error) {
	b.names, b.argument = b.names[:0], append(b.argument[:0], 0)
	if b.all {
		b.argument[0] = 1
	}
	for _, q := range b.sent {
		b.names = append(b.names, q.name)
		b.argument = append(b.argument, q.layout.header[:]...)
		count := len(b.argument)
		b.argument = append(b.argument, 0)
		gives := false
		for _, c := range q.batched {
			if c.late = noDeadline; !c.items[0].corrects() {
				c.late = o.server(c.deadline)
			}
			for i := range c.items {
				b.argument = appendItem(b.argument, &c.items[i], c.late)
				gives = gives || c.items[i].givesBack()
			}
			b.argument[count] += byte(len(c.items))
		}
		resets := l.denials.of(q.key)
		if gives { // no call may be refused by what was seen before
			resets.Add(1)
			defer resets.Add(resetEnds)
		}
		q.resets = resets.Load()
	}
	return l.run(b.names, b.argument)
}

// deliver decides the calls that were in time, from the buckets before them. It reports whether
// these are all calls.
func (l *shared) deliver(b *batch, r reply, sent, received int64) (all bool) {
	inTime, granted := 0, true
	for i, q := range b.sent {
		bucket, err := r.bucket(i)
		if b.all && r.failure != nil {
			err = r.failure
		}
		w := sight{q.layout.found(bucket, r.now), q.layout.id, sent, received, q.resets}
		most := uint64(0) // of the costs that a full bucket can pay
		for _, c := range q.batched {
			if r.now > c.late {
				continue
			}
			inTime++
			c.before, c.lost = w.state, nil
			for j := range c.items {
				before := w.state
				o := q.layout.apply(&w.state, &c.items[j])
				granted = granted && o.Allowed
				if err != nil && (b.all || err.Cause == CauseForeign || w.state != before) {
					c.lost = err
				}
				if c.items[j].units <= q.layout.capacity {
					most = max(most, c.items[j].units)
				}
			}
		}
		if err == nil && !b.all {
			l.remember(q.layout, q.key, w, most) // before a caller knows
		}
	}
	if inTime == 0 {
		l.counts.stale.Add(1)
		return false
	}
	n := b.queues[0].node
	var failure error
	if r.failure != nil {
		failure = r.failure
	}
	l.observe(n, sent, healthOf(failure), failure)
	l.finish(b, func(c *call) (bool, error) {
		if r.now > c.late {
			return false, nil
		}
		if c.stage == left && c.lost == nil && (granted || !b.all) &&
			c.layout.apply(&c.before, &c.items[0]).Allowed {
			l.counts.abandoned.Add(1)
		}
		return true, c.lost
	})
	return inTime == b.calls
}

// fail decides all calls.
func (l *shared) fail(b *batch, err error) {
	l.finish(b, func(*call) (bool, error) { return true, err })
}

// finish decides the calls for which decide returns true, with its error, and lets their callers
// return. decide is called with the lock of pending held.
func (l *shared) finish(b *batch, decide func(*call) (bool, error)) {
	l.pending.mu.Lock()
	for _, q := range b.queues {
		q.batched = slices.DeleteFunc(q.batched, func(c *call) bool {
			done, err := decide(c)
			if done && l.pending.end(c, decided, err) {
				b.woken = append(b.woken, c)
			}
			return done
		})
	}
	l.pending.mu.Unlock()
	wake(b.woken)
	clear(b.woken)
	b.woken = b.woken[:0]
}
