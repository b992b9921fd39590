package redis

import (
	"hash/maphash"
	"strings"
	"sync/atomic"

	"github.com/puzpuzpuz/xsync/v3"
)

// maxDenials is the most keys whose bucket is remembered, in 11 MB, or 30 MB if they are long.
const maxDenials = 1 << 16

// denials remembers buckets that could not pay what was asked of them. As a rule, other clients
// only take tokens, so the bucket has no more than a bucket from which none has been taken since. A
// cost that this bucket cannot pay would be refused by the server too.
//
// The bucket is remembered and not only the refused cost, so the answers are exact.
type denials struct {
	seen *xsync.MapOf[string, *denial]

	// resets has a count for each part of the keys. The lower half of a count is the resets under way,
	// and the upper half is the resets that have ended. A bucket from before a reset does not count
	// after it. During a reset none counts, because a command may have met the new bucket already.
	resets [256]atomic.Uint64
	seed   maphash.Seed
}

func (d *denials) init() {
	d.seen = xsync.NewMapOf[string, *denial]()
	d.seed = maphash.MakeSeed()
}

func (d *denials) of(key string) *atomic.Uint64 {
	return &d.resets[maphash.String(d.seed, key)%uint64(len(d.resets))]
}

const resetEnds = 1<<32 - 1

// sight is a bucket that the server has shown between two local times. All times are in µs.
type sight struct {
	state
	layout         *layout
	sent, received int64
	resets         uint64 // of denials, when the command was sent
}

// latest returns the latest time that the server's clock may show at a local time after the reply.
func (w *sight) latest(local int64) uint64 {
	since := local - w.sent
	return w.now + uint64(since+since/drift+2)
}

// denial is a bucket that counts until a local time. It is immutable.
type denial struct {
	sight
	until int64
}

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
	v, _ := l.denials.seen.Load(shorten(key))
	local := l.local()
	if !l.denials.holds(key, v, local) || v.layout != m {
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
func (l *shared) remember(key string, w sight, cost uint64) {
	if l.denial == 0 || uint32(w.resets) != 0 {
		return
	}
	d, m, end := &l.denials, w.layout, int64(0)
	if s := w.state; cost > 0 && !m.pay(&s, cost) {
		end = w.sent + min(l.denial, m.retry(&s, cost)).Microseconds()
	}
	short := shorten(key)
	old, _ := d.seen.Load(short)
	if old == nil && end <= w.received {
		return
	}
	if old == nil && d.seen.Size() >= maxDenials { // all of them end soon
		d.seen.Clear()
	}
	d.seen.Compute(strings.Clone(short), func(old *denial, _ bool) (_ *denial, ended bool) {
		until := end
		switch held := d.holds(key, old, w.received); {
		case held && old.layout == m:
			if !m.isBefore(old.state, w.state) {
				return old, false
			}
			until = max(until, old.until)
		case held && w.now < old.now:
			return old, false
		}
		return &denial{w, until}, until <= w.received
	})
}

// isBefore reports whether s is older than v. Clocks may be set back, but of two states of a bucket
// the older lacks less at any time, because clients only take. If nothing was taken in between, the
// states are the same, and the time of the decision is the order.
func (m *layout) isBefore(s, v state) bool {
	latest := max(s.time, v.time)
	a, b := m.at(s, latest).deficit, m.at(v, latest).deficit
	return a < b || a == b && s.now < v.now
}
