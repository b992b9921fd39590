package redis

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// trip makes commands, one after another. Each takes the costs of the calls aboard.
type trip struct {
	queues []*queue // all that have boarded
	sent   []*queue // those with calls in the command
	calls  int      // in the command
	states []state  // the reply
	woken  []*call

	items []item
	names []string
	args  [2]string
}

// travel makes a trip. It never repeats a command that the server may have executed. The server
// does not take costs whose deadline, by its clock, has passed. If their callers still wait, a
// clock was set, or this is the first trip, and the second attempt knows the server's clock better.
func (l *Limiter) travel(t *trip) {
	n := t.queues[0].node
	for range 2 {
		sent := l.local()
		if !l.depart(t, sent) {
			return
		}
		now, err := l.command(t, &n.offset)
		received := l.local()
		if err != nil {
			l.observe(n, sent, healthOf(err), err)
			var e *rueidis.RedisError
			if len(t.sent) > 1 && errors.As(err, &e) {
				l.separate(t, received)
			} else {
				l.fail(t, err)
			}
			return
		}
		if l.clock == nil {
			n.offset.learn(sent, received, int64(now))
		}
		if l.deliver(t, n, now, sent, received) {
			return
		}
	}
	l.fail(t, timedOut())
}

// depart keeps the calls aboard whose callers still wait at a local time, and reports whether there
// are any.
func (l *Limiter) depart(t *trip, local int64) bool {
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

// command sends the costs of the calls aboard, and returns the server's time. It sets t.states to
// the buckets before the costs, which is not valid if all costs were late.
func (l *Limiter) command(t *trip, o *offset) (now uint64, err error) {
	t.names = t.names[:0]
	for _, q := range t.sent {
		t.names = append(t.names, q.name)
		q.resets = l.denials.of(q.key).Load()
	}
	args := append(t.args[:0], "")
	if l.clock != nil {
		args = append(args, strconv.FormatInt(l.clock().UnixMicro(), 10))
	}
	l.setDeadlines(t, o)
	s := l.layout.script
	if len(t.sent) == 1 {
		t.items = t.sent[0].items(t.items[:0])
		args[0] = rueidis.BinaryString(l.layout.argument(t.items))
	} else {
		s = l.layout.takeEach
		args[0] = rueidis.BinaryString(l.argument(t))
	}
	reply, err := l.run(s, t.names, args...)
	if err != nil {
		return 0, err
	}
	return l.parse(t, reply)
}

func (l *Limiter) parse(t *trip, reply rueidis.RedisMessage) (now uint64, err error) {
	t.states = slices.Grow(t.states[:0], len(t.sent))[:len(t.sent)]
	if len(t.sent) == 1 && reply.IsInt64() { // all costs were late
		now, _ := reply.ToInt64()
		return uint64(now), nil
	}
	text, err := reply.ToString()
	if err != nil {
		return 0, &Error{Rejected, err}
	}
	ok := false
	if len(t.sent) == 1 {
		t.states[0], ok = l.layout.parse(text, t.items)
		now = t.states[0].now
	} else {
		now, ok = parseStates(text, t.states)
	}
	if !ok {
		return 0, &Error{Rejected, errors.New("the reply has another form")}
	}
	return now, nil
}

// setDeadlines sets the deadlines of the calls aboard by the server's clock.
func (l *Limiter) setDeadlines(t *trip, o *offset) {
	latest := int64(0)
	for _, q := range t.sent {
		for _, c := range q.aboard {
			c.late = noDeadline
			latest = max(latest, c.deadline)
		}
	}
	if l.clock != nil {
		return
	}
	last := o.server(latest)
	for _, q := range t.sent {
		for _, c := range q.aboard {
			c.late = uint64(max(0, last-float64(latest-c.deadline)))
		}
	}
}

// items appends the costs of the calls aboard.
func (q *queue) items(items []item) []item {
	for _, c := range q.aboard {
		for _, cost := range c.costs {
			items = append(items, item{cost, c.late})
		}
	}
	return items
}

// argument returns the argument of takeeach.lua.
func (l *Limiter) argument(t *trip) []byte {
	b := slices.Clone(l.layout.header)
	for _, q := range t.sent {
		t.items = q.items(t.items[:0])
		b = appendBucket(b, t.items)
	}
	return b
}

// deliver decides the calls aboard that were in time, from the buckets before them. It reports
// whether these are all calls.
func (l *Limiter) deliver(t *trip, n *node, now uint64, sent, received int64) (all bool) {
	inTime := 0
	for i, q := range t.sent {
		w := sight{t.states[i], sent, received, q.resets}
		here, most := 0, uint64(0) // most of the costs that a full bucket can pay
		for _, c := range q.aboard {
			if now > c.late {
				continue
			}
			here++
			c.before = w.state
			for _, cost := range c.costs {
				l.layout.pay(&w.state, cost)
				if cost <= l.layout.capacity {
					most = max(most, cost)
				}
			}
		}
		if here > 0 {
			l.remember(q.key, w, most) // before a caller knows
		}
		inTime += here
	}
	if inTime == 0 {
		l.counts.stale.Add(1)
		return false
	}
	l.observe(n, sent, healthy, nil)
	l.trips.mu.Lock()
	for _, q := range t.sent {
		q.disembark(func(c *call) bool {
			if now > c.late {
				return false
			}
			if c.place == left && l.layout.pay(&c.before, c.costs[0]) {
				l.counts.abandoned.Add(1)
			}
			t.arrive(l, c, nil)
			return true
		})
	}
	l.trips.mu.Unlock()
	t.wake()
	return inTime == t.calls
}

// fail decides all calls aboard.
func (l *Limiter) fail(t *trip, err error) {
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

// lonelyTime is for how long, in µs, each bucket travels alone after an error of several.
const lonelyTime = int64(time.Second / time.Microsecond)

// separate lets the calls aboard wait again, after an error that may concern only one of the
// buckets, such as a value that is not a bucket. Nothing has been executed: see takeeach.lua.
func (l *Limiter) separate(t *trip, local int64) {
	s := &l.trips
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lonely = local + lonelyTime
	for _, q := range t.sent {
		q.disembark(func(c *call) bool { return c.place == left })
		for _, c := range q.aboard {
			c.place = waiting
		}
		q.waiting = slices.Insert(q.waiting, 0, q.aboard...)
		q.disembark(func(*call) bool { return true })
	}
}

// disembark removes the calls aboard for which done returns true.
func (q *queue) disembark(done func(*call) bool) { q.aboard = slices.DeleteFunc(q.aboard, done) }

// arrive decides a call that is aboard. The lock of trips is held, until wake.
func (t *trip) arrive(l *Limiter, c *call, err error) {
	if l.trips.arrive(c, err) {
		t.woken = append(t.woken, c)
	}
}

func (t *trip) wake() {
	wake(t.woken)
	clear(t.woken)
	t.woken = t.woken[:0]
}
