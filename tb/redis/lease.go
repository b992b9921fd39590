package redis

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puzpuzpuz/xsync/v3"
	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/tb"
)

// maxLeases is the most keys that have a lease. Calls on further keys make trips.
const maxLeases = 1 << 16

// leases are the tokens that this process has taken and not spent yet, by key. All methods are safe
// for concurrent use.
type leases struct {
	l    *Limiter
	life int64        // µs of the local clock
	now  func() int64 // the local clock
	keys *xsync.MapOf[string, *lease]

	mu      sync.Mutex
	closed  bool
	timer   *time.Timer    // of the next sweep, or nil
	sweeper sync.WaitGroup // waits for the timer
}

// lease is the part of a bucket that this process may spend without a trip.
type lease struct {
	claim atomic.Pointer[claim] // the latest, or nil

	mu      sync.Mutex
	pending chan struct{} // is closed when the claim that is under way is over; nil without one
	size    uint64        // units to take beyond the cost of a call
	gone    bool          // it is not in the table any more
}

// claim is tokens that one trip has taken beyond the cost of its call.
type claim struct {
	left  atomic.Uint64 // units; none are spent at end or later
	end   int64         // local time in µs
	after state         // the bucket after the trip
}

// spend takes units if the claim has them, and returns the bucket as the claim knows it.
func (c *claim) spend(units uint64, now int64) (s state, ok bool) {
	if c == nil || now >= c.end {
		return s, false
	}
	for {
		left := c.left.Load()
		if left < units {
			return s, false
		}
		if c.left.CompareAndSwap(left, left-units) {
			s = c.after
			s.deficit -= left - units
			return s, true
		}
	}
}

// newLeases returns nil if leases do not pay: see WithLease.
func newLeases(l *Limiter, h time.Duration) *leases {
	if h == 0 || !l.layout.reserve(h) {
		return nil
	}
	us := h.Microseconds()
	return &leases{
		l: l, life: us - us/drift - 1, now: l.local, keys: xsync.NewMapOf[string, *lease](),
	}
}

// take takes units from key's lease, or from the server.
func (ls *leases) take(ctx context.Context, key string, units uint64) (result, error) {
	if x, ok := ls.keys.Load(key); ok {
		c := x.claim.Load()
		if s, ok := c.spend(units, ls.now()); ok {
			return ls.granted(c, s), nil
		}
	}
	for waited := false; ; waited = true {
		x := ls.get(key)
		if x == nil {
			break
		}
		x.mu.Lock()
		c, pending := x.claim.Load(), x.pending
		s, ok := c.spend(units, ls.now())
		if !ok && pending == nil && !x.gone {
			x.pending = make(chan struct{})
			x.mu.Unlock()
			return ls.renew(ctx, x, key, units)
		}
		x.mu.Unlock()
		if ok {
			return ls.granted(c, s), nil
		}
		if waited {
			break
		}
		if pending != nil {
			var cancel context.CancelFunc // the wait and the trip after it have one timeout
			ctx, cancel = context.WithTimeout(ctx, ls.l.timeout)
			defer cancel()
			select {
			case <-pending:
			case <-ctx.Done():
			}
		}
	}
	return ls.l.serve(ctx, key, units)
}

// granted returns the result of a call that c has paid.
func (ls *leases) granted(c *claim, s state) result {
	ls.l.counts.leased.Add(1)
	m := &ls.l.layout
	d := tb.Decision{Allowed: true, Remaining: int((m.capacity - s.deficit) / m.scale)}
	return result{Outcome{Decision: d, By: Lease}, s, c}
}

// renew takes units and a new claim in one trip. The caller has set x.pending.
func (ls *leases) renew(
	ctx context.Context, x *lease, key string, units uint64,
) (r result, err error) {
	defer ls.renewed(x, key)
	l, m := ls.l, &ls.l.layout
	costs := []uint64{units}
	var extra uint64
	if old := x.claim.Load(); old != nil {
		switch used := old.left.Load() < units; {
		case !used:
			x.size /= 2
		case ls.now() < old.end:
			x.size = min(max(2*x.size, units), m.capacity)
		}
		extra = min(x.size, (m.capacity-old.after.deficit)/2) / units * units
		if old.left.Load() > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, l.timeout)
			defer cancel()
			ls.giveBack(ctx, key, old) //nolint:errcheck // then its tokens are lost
		}
	}
	if extra > 0 {
		costs = append(costs, extra)
	}
	c := &claim{end: ls.now() + ls.life}
	if r.state, err = l.call(ctx, key, costs...); err != nil {
		return r, l.counts.failed(err)
	}
	r.Decision = m.take(&r.state, units)
	l.counts.decided(r.Allowed)
	c.after = r.state
	if extra > 0 && m.take(&c.after, extra).Allowed {
		c.left.Store(extra)
		l.counts.claimed.Add(extra)
	}
	x.claim.Store(c)
	return r, nil
}

// renewed ends a renewal. If the lease is not in the table any more, its tokens are given back.
func (ls *leases) renewed(x *lease, key string) {
	x.mu.Lock()
	close(x.pending)
	x.pending = nil
	gone := x.gone
	x.mu.Unlock()
	if c := x.claim.Load(); gone && c != nil {
		ls.giveBack(context.Background(), key, c) //nolint:errcheck // then its tokens are lost
	}
}

// giveBack gives back what a claim has left.
func (ls *leases) giveBack(ctx context.Context, key string, c *claim) error {
	left := c.left.Swap(0)
	if left == 0 {
		return nil
	}
	l := ls.l
	argument := rueidis.BinaryString(l.layout.appendGiveBack(nil, left, c.after.time))
	return l.send(ctx, func(int64) error {
		var reply rueidis.RedisMessage
		var err error
		l.denials.reset(func() {
			reply, err = l.run(l.layout.giveBack, []string{l.name(key)}, argument)
		}, key)
		if err == nil {
			n, _ := reply.ToInt64()
			l.counts.returned.Add(uint64(n))
		}
		return err
	})
}
