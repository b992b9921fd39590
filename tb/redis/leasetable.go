package redis

import (
	"context"
	"time"
)

// get returns key's lease. It is nil if the table is full or closed.
func (ls *leases) get(key string) *lease {
	if x, ok := ls.keys.Load(key); ok {
		return x
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.closed || ls.keys.Size() >= maxLeases {
		return nil
	}
	x, _ := ls.keys.LoadOrStore(key, &lease{key: key})
	ls.schedule()
	return x
}

// schedule starts the timer of the next sweep. The lock is held.
func (ls *leases) schedule() {
	if ls.timer == nil && !ls.closed {
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
// tokens. After an error it gives nothing back, so that a server that does not answer delays it by
// one timeout.
func (ls *leases) sweep(all bool) {
	var err error
	ls.keys.Range(func(key string, x *lease) bool {
		x.mu.Lock()
		c, pending := x.claim.Load(), x.pending
		gone := all || pending == nil && (c == nil || ls.now() >= c.end)
		x.gone = gone
		x.mu.Unlock()
		if !gone {
			return true
		}
		if pending != nil {
			<-pending
		}
		ls.keys.Delete(key)
		if c := x.claim.Load(); c != nil && err == nil {
			err = ls.giveBack(context.Background(), x, c)
		}
		return true
	})
}

// forget drops key's lease, and gives nothing back.
func (ls *leases) forget(key string) {
	if x, ok := ls.keys.Load(key); ok {
		x.mu.Lock()
		defer x.mu.Unlock()
		if c := x.claim.Swap(nil); c != nil {
			c.left.Store(0)
		}
	}
}

// close gives back the tokens of all leases. Further calls go to the server.
func (ls *leases) close() {
	ls.mu.Lock()
	ls.closed = true
	if ls.timer != nil && ls.timer.Stop() {
		ls.sweeper.Done()
	}
	ls.mu.Unlock()
	ls.sweeper.Wait()
	ls.sweep(true)
}
