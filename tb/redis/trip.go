package redis

import "slices"

// trip makes commands, one after another. Each has the items of the calls aboard.
type trip struct {
	queues []*queue // all that have boarded
	sent   []*queue // those with calls in the command
	calls  int      // in the command
	woken  []*call

	names    []string
	argument []byte
}

// travel makes a trip. It never repeats a command that the server may have executed. The server
// ignores items whose deadline, by its clock, has passed. If their callers still wait, a clock was
// set, or this is the first trip, and the second attempt knows the server's clock better.
func (l *shared) travel(t *trip) {
	n := t.queues[0].node
	for range 2 {
		sent := l.local()
		if !l.depart(t, sent) {
			return
		}
		r, err := l.command(t, &n.offset)
		received := l.local()
		if err != nil {
			l.observe(n, sent, healthOf(err), err)
			l.fail(t, err)
			return
		}
		n.offset.learn(sent, received, int64(r.now))
		if l.deliver(t, n, r, sent, received) {
			return
		}
	}
	l.fail(t, timedOut())
}

// depart keeps the calls aboard whose callers still wait at a local time, and reports whether there
// are any.
func (l *shared) depart(t *trip, local int64) bool {
	t.sent, t.calls = t.sent[:0], 0
	l.trips.mu.Lock()
	for _, q := range t.queues {
		q.disembark(func(c *call) bool {
			if c.deadline > local {
				return c.place == left
			}
			t.arrive(l, c, timedOut())
			return true
		})
		if len(q.aboard) > 0 {
			t.sent = append(t.sent, q)
			t.calls += len(q.aboard)
		}
	}
	l.trips.mu.Unlock()
	t.wake()
	return len(t.sent) > 0
}

// command sends the items of the calls aboard.
func (l *shared) command(t *trip, o *offset) (reply, error) {
	latest := int64(0)
	for _, q := range t.sent {
		for _, c := range q.aboard {
			latest = max(latest, c.deadline)
		}
	}
	last := o.server(latest)
	t.names, t.argument = t.names[:0], append(t.argument[:0], 0)
	for _, q := range t.sent {
		t.names = append(t.names, q.name)
		t.argument = append(t.argument, q.layout.header[:]...)
		count := len(t.argument)
		t.argument = append(t.argument, 0)
		gives := false
		for _, c := range q.aboard {
			c.late = uint64(max(0, last-float64(latest-c.deadline)))
			if c.items[0].corrects() {
				c.late = noDeadline
			}
			for i := range c.items {
				t.argument = appendItem(t.argument, &c.items[i], c.late)
				gives = gives || c.items[i].givesBack()
			}
			t.argument[count] += byte(len(c.items))
		}
		resets := l.denials.of(q.key)
		if gives { // no call may be refused by what was seen before
			resets.Add(1)
			defer resets.Add(resetEnds)
		}
		q.resets = resets.Load()
	}
	return l.run(t.names, t.argument)
}

// deliver decides the calls aboard that were in time, from the buckets before them. It reports
// whether these are all calls.
func (l *shared) deliver(t *trip, n *node, r reply, sent, received int64) (all bool) {
	inTime := 0
	for i, q := range t.sent {
		bucket, err := r.bucket(i)
		w := sight{q.layout.found(bucket, r.now), q.layout.id, sent, received, q.resets}
		here, most := 0, uint64(0) // most of the costs that a full bucket can pay
		for _, c := range q.aboard {
			if r.now > c.late {
				continue
			}
			here++
			c.before, c.lost = w.state, nil
			for j := range c.items {
				before := w.state
				q.layout.apply(&w.state, &c.items[j])
				if err != nil && (err.Cause == CauseForeign || w.state != before) {
					c.lost = err
				}
				if c.items[j].units <= q.layout.capacity {
					most = max(most, c.items[j].units)
				}
			}
		}
		if here > 0 && err == nil {
			l.remember(q.layout, q.key, w, most) // before a caller knows
		}
		inTime += here
	}
	if inTime == 0 {
		l.counts.stale.Add(1)
		return false
	}
	if r.failure != nil {
		l.observe(n, sent, healthOf(r.failure), r.failure)
	} else {
		l.observe(n, sent, healthy, nil)
	}
	l.trips.mu.Lock()
	for _, q := range t.sent {
		q.disembark(func(c *call) bool {
			if r.now > c.late {
				return false
			}
			if c.place == left && c.lost == nil && q.layout.apply(&c.before, &c.items[0]).Allowed {
				l.counts.abandoned.Add(1)
			}
			t.arrive(l, c, c.lost)
			return true
		})
	}
	l.trips.mu.Unlock()
	t.wake()
	return inTime == t.calls
}

// fail decides all calls aboard.
func (l *shared) fail(t *trip, err error) {
	l.trips.mu.Lock()
	for _, q := range t.queues {
		q.disembark(func(c *call) bool {
			t.arrive(l, c, err)
			return true
		})
	}
	l.trips.mu.Unlock()
	t.wake()
}

// disembark removes the calls aboard for which done returns true.
func (q *queue) disembark(done func(*call) bool) { q.aboard = slices.DeleteFunc(q.aboard, done) }

// arrive decides a call that is aboard. The lock of trips is held, until wake.
func (t *trip) arrive(l *shared, c *call, err error) {
	if l.trips.arrive(c, err) {
		t.woken = append(t.woken, c)
	}
}

func (t *trip) wake() {
	wake(t.woken)
	clear(t.woken)
	t.woken = t.woken[:0]
}
