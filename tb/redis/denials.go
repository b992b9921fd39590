package redis

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/seed-181794aa/ratelimit/lru"
)

// maxDenials is the most keys whose bucket is remembered, in about 10 MB if they are short.
const maxDenials = 1 << 16

// denials remembers buckets that could not pay what was asked of them. As a rule, other clients
// only take tokens, so the bucket has no more than a bucket from which none has been taken since. A
// cost that this bucket cannot pay would be refused by the server too.
//
// The bucket is remembered and not only the refused cost, so the answers are exact.
type denials struct {
	lru.Map[string, denial]

	// resets has a count for each part of the keys. The lower half of a count is the resets under way,
	// and the upper half is the resets that have ended. A bucket from before a reset does not count
	// after it. During a reset none counts, because a command may have met the new bucket already.
	resets [256]atomic.Uint64
	seed   maphash.Seed
}

// of returns the count of key's resets.
func (d *denials) of(key string) *atomic.Uint64 {
	return &d.resets[maphash.String(d.seed, key)%uint64(len(d.resets))]
}

// resetEnds is added to a count when a reset ends.
const resetEnds = 1<<32 - 1

// sight is a bucket that the server has shown between two local times. All times are in µs.
type sight struct {
	state
	layout         uint64 // its id, because a value of the map has no pointers
	sent, received int64
	resets         uint64 // of denials, when the command was sent
}

// latest returns the latest time that the server's clock may show at a local time after the reply.
func (w *sight) latest(local int64) uint64 {
	since := local - w.sent
	return w.now + uint64(since+since/drift+2)
}

// denial is a bucket that counts until a local time. It is immutable, except for replaced.
type denial struct {
	sight
	until    int64
	replaced atomic.Bool
}

// Stamp implements lru.Values.
func (*denials) Stamp(v *denial) (stamp, word uint64, final bool) {
	return uint64(v.until), 0, v.replaced.Load()
}

// Retire implements lru.Values.
func (*denials) Retire(*denial, uint64, uint64, uint64) bool { return true }

// holds reports whether v, which may be nil, counts for key at a local time.
func (d *denials) holds(key string, v *denial, local int64) bool {
	return v != nil && local < v.until && v.resets == d.of(key).Load()
}

// denied returns the bucket of key now, if it is known that it cannot pay for an item that may not
// wait. Its time is the server's time at the last reply, plus the local time since.
func (l *shared) denied(m *layout, key string, it *item) (s state, ok bool) {
	need := it.needs()
	if l.denial == 0 || it.kind != kindTake && it.kind != kindKeep || need > m.capacity {
		return s, false
	}
	v, local := l.denials.Load(key), l.local()
	if !l.denials.holds(key, v, local) || v.layout != m.id {
		return s, false
	}
	s = m.at(v.state, v.latest(local))
	if m.pay(&s, need) || it.hold > 0 && !s.held { // the server would hold it
		return s, false
	}
	return m.at(v.state, v.now+uint64(max(0, local-v.received))), true
}

// remember keeps a bucket that cannot pay cost, and brings a bucket up to date that is kept. What
// is kept under another limit does not count any more, unless it is of a later command: the bucket
// was converted since.
func (l *shared) remember(m *layout, key string, w sight, cost uint64) {
	if l.denial == 0 || uint32(w.resets) != 0 {
		return
	}
	until := int64(0)
	if s := w.state; cost > 0 && !m.pay(&s, cost) {
		until = w.sent + min(l.denial, m.retry(&s, cost)).Microseconds()
	}
	set := func(v *denial) { v.sight, v.until = w, until }
	for {
		old := l.denials.Load(key)
		held := l.denials.holds(key, old, w.received)
		switch {
		case held && old.layout == w.layout:
			if !m.isBefore(old.state, w.state) {
				return
			}
			until = max(until, old.until)
		case held && w.now < old.now, !held && until <= w.received:
			return
		}
		if old == nil {
			now := uint64(w.received)
			_, _, outcome := l.denials.Insert(key, now, now, 0, func(v *denial) uint64 {
				set(v)
				return uint64(until)
			})
			if outcome == lru.Inserted {
				return
			}
			continue
		}
		old.replaced.Store(true)
		if l.denials.Replace(key, old, 0, set) != nil {
			return
		}
	}
}

// isBefore reports whether s is older than v. Clocks may be set back, but of two states of a bucket
// the older lacks less at any time, because clients only take. If nothing was taken in between, the
// states are the same, and the time of the decision is the order.
func (m *layout) isBefore(s, v state) bool {
	latest := max(s.time, v.time)
	a, b := m.at(s, latest).deficit, m.at(v, latest).deficit
	return a < b || a == b && s.now < v.now
}
