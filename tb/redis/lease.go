package redis

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puzpuzpuz/xsync/v3"

	"github.com/seed-181794aa/ratelimit/tb"
)

const maxLeases = 1 << 16 // calls on further keys go to the server

// leases are the tokens that this process has taken and not spent yet, by key. All methods are safe
// for concurrent use.
type leases struct {
	l    *shared
	life int64        // µs of the local clock
	now  func() int64 // the local clock
	keys *xsync.MapOf[string, *lease]

	mu      sync.Mutex
	closed  atomic.Bool    // is set under mu
	closing sync.Once      // so that a second Close waits for what the first gives back
	timer   *time.Timer    // of the next sweep, or nil
	sweeper sync.WaitGroup // waits for the timer
}

type lease struct {
	key   string
	claim atomic.Pointer[claim] // the latest, or nil
	busy  chan struct{}         // has one place, for the call that renews or removes the lease
	gone  bool                  // it is not in the table any more; guarded by busy
}

// claim is tokens that one command has taken beyond the cost of its call.
type claim struct {
	layout *layout
	left   atomic.Uint64 // units; none are spent at end or later
	end    int64         // local time in µs
	after  state         // the bucket after the command
	size   uint64        // the units at first, or 0 if the next claim is as the first
}

func (c *claim) isEmpty() bool { return c == nil || c.left.Load() == 0 }

// spend takes units if the claim has them. The result has the bucket as the claim knows it.
func (c *claim) spend(m *layout, units uint64, now int64, r *result) bool {
	if c == nil || c.layout != m || now >= c.end {
		return false
	}
	for {
		left := c.left.Load()
		if left < units {
			return false
		}
		if c.left.CompareAndSwap(left, left-units) {
			r.By, r.before, r.after, r.from = ByLease, c.after, c.after, c
			r.before.deficit -= units // the last of the grants of which the claim is one: see giveBack
			r.before.charge(0)
			r.after.deficit -= left - units
			r.Decision = tb.Decision{Allowed: true, Remaining: m.remaining(&r.after, 0)}
			return true
		}
	}
}

// init makes leases of l that end within h. If h is 0, nothing is leased.
func (ls *leases) init(l *shared, h time.Duration) {
	us := h.Microseconds()
	ls.l, ls.life, ls.now = l, us-us/drift-1, l.local
	ls.keys = xsync.NewMapOf[string, *lease]()
}

func (ls *leases) latest(key string) *claim {
	if x, ok := ls.keys.Load(key); ok {
		return x.claim.Load()
	}
	return nil
}

func (ls *leases) take(
	ctx context.Context, m *layout, key string, it *item, r *result,
) error {
	l, c := ls.l, ls.latest(key)
	if c.spend(m, it.units, ls.now(), r) {
		return nil
	}
	_, denied := l.denied(m, key, it)
	if denied && c.isEmpty() || it.units > m.capacity { // a lease does not help
		return l.serve(ctx, m, key, it, r)
	}
	if err := l.admit(ctx); err != nil {
		return err
	}
	x := ls.get(key)
	if x == nil {
		return l.serve(ctx, m, key, it, r)
	}
	waits := false
	select {
	case x.busy <- struct{}{}:
	default:
		waits = true                  // and shares a command with others if it finds too few tokens
		var cancel context.CancelFunc // the wait and the command after it have one timeout
		ctx, cancel = context.WithTimeout(ctx, l.timeout)
		defer cancel()
		select {
		case x.busy <- struct{}{}:
		case <-ctx.Done():
			return l.serve(ctx, m, key, it, r)
		}
	}
	spent := x.claim.Load().spend(m, it.units, ls.now(), r)
	if !spent && !waits && !x.gone {
		return ls.renew(ctx, m, x, it.units, r)
	}
	<-x.busy
	if spent {
		return nil
	}
	return l.serve(ctx, m, key, it, r)
}

// renew takes units and a new claim by one command, until the timeout or the deadline of ctx. The
// caller has taken the place of x. The command takes tokens for others too, so a caller that leaves
// returns with the reply. If the key was reset or held meanwhile, the new claim is dropped: it may
// be of the bucket before. After an error, a lease grows anew.
func (ls *leases) renew(
	ctx context.Context, m *layout, x *lease, units uint64, r *result,
) error {
	defer func() { <-x.busy }()
	l := ls.l
	old, c, none := x.claim.Load(), &claim{layout: m}, new(claim)
	x.claim.CompareAndSwap(old, none) // so a Cancel does not give its tokens to old
	items := []item{{units: units}}
	extra := ls.extra(m, old, units)
	if extra > 0 {
		items = append(items, item{units: extra})
	}
	end := time.Now().Add(l.timeout)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(end) {
		end = deadline
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), end)
	defer cancel()
	if !old.isEmpty() {
		_ = ls.giveBack(ctx, x, old) // if it fails, its tokens are lost
	}
	c.end = ls.now() + ls.life
	before, err := l.call(ctx, m, x.key, items...)
	if err != nil {
		if old != nil {
			old.size = 0
		}
		x.claim.CompareAndSwap(none, old)
		return err
	}
	r.fill(m, before, &items[0])
	c.after = r.after
	if m.pay(&c.after, extra) {
		c.size = extra
		c.left.Store(extra)
		l.counts.claimed.Add(extra, m.scale)
	}
	x.claim.CompareAndSwap(none, c)
	return nil
}

func (ls *leases) extra(m *layout, old *claim, units uint64) uint64 {
	if old == nil || old.layout != m {
		return 0
	}
	size := old.size
	switch used := old.left.Load() < units; {
	case !used:
		size /= 2
	case ls.now() < old.end:
		size = max(2*size, units)
	}
	return min(size, (m.capacity-old.after.deficit)/2) / units * units
}

// giveBack gives back what a claim of x has left: a grant of size units is one of what was spent,
// and one of what is left, at the same instant. It reports whether the server has failed.
func (ls *leases) giveBack(ctx context.Context, x *lease, c *claim) bool {
	left := c.left.Swap(0)
	if left == 0 {
		return false
	}
	l, m := ls.l, c.layout
	before := c.after
	before.deficit -= left
	before.charge(0)
	it := undoOf(before, left)
	s, err := l.call(ctx, m, x.key, it)
	var e *Error
	switch {
	case err == nil:
		l.counts.returned.Add(m.undo(&s, &it), m.scale)
	case errors.As(err, &e) && e.health() == unknown: // nothing was sent
		c.left.Add(left)
	}
	return e.health() == failed
}

// get returns key's lease. It is nil if the table is full or closed.
func (ls *leases) get(key string) *lease {
	if x, ok := ls.keys.Load(key); ok {
		return x
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.closed.Load() || ls.keys.Size() >= maxLeases {
		return nil
	}
	x, _ := ls.keys.LoadOrStore(key, &lease{key: key, busy: make(chan struct{}, 1)})
	ls.schedule()
	return x
}

// schedule starts the timer of the next sweep. The lock is held.
func (ls *leases) schedule() {
	if ls.timer == nil && !ls.closed.Load() {
		ls.sweeper.Add(1)
		ls.timer = time.AfterFunc(time.Duration(ls.life)*time.Microsecond, func() {
			defer ls.sweeper.Done()
			ls.sweep(false)
			ls.mu.Lock()
			defer ls.mu.Unlock()
			ls.timer = nil
			if ls.keys.Size() > 0 {
				ls.schedule()
			}
		})
	}
}

// sweep removes the leases that have ended, or all after their renewals, and gives back their
// tokens, so many at a time that they share commands. After a failure it gives nothing more back to
// that node, so that a server that does not answer delays it by one timeout, or some in a cluster.
func (ls *leases) sweep(all bool) {
	var down sync.Map // the nodes that have failed
	var under sync.WaitGroup
	most := maxShared * maxBuckets
	if ls.l.stats().Breaker == BreakerRecovering { // it would refuse more
		most = leastInFlight
	}
	places := make(chan struct{}, most)
	ls.keys.Range(func(key string, x *lease) bool {
		select {
		case x.busy <- struct{}{}:
		default:
			if !all {
				return true
			}
			x.busy <- struct{}{}
		}
		c := x.claim.Load()
		gone := all || c == nil || ls.now() >= c.end
		x.gone = gone
		<-x.busy
		if gone {
			ls.keys.Delete(key)
			if n := ls.l.node(key); !c.isEmpty() {
				places <- struct{}{}
				under.Go(func() {
					if _, ok := down.Load(n); !ok && ls.giveBack(context.Background(), x, c) {
						down.Store(n, true)
					}
					<-places
				})
			}
		}
		return true
	})
	under.Wait()
}

func (ls *leases) forget(key string) {
	if x, ok := ls.keys.Load(key); ok {
		if c := x.claim.Swap(nil); c != nil {
			c.left.Store(0)
		}
	}
}

func (ls *leases) close() {
	ls.mu.Lock()
	ls.closed.Store(true)
	if ls.timer != nil && ls.timer.Stop() {
		ls.sweeper.Done()
	}
	ls.mu.Unlock()
	ls.sweeper.Wait()
	ls.sweep(true)
}
