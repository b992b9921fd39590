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
	x, _ := ls.keys.LoadOrStore(key, new(lease))
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

// sweep removes the leases that have ended, or all, and gives back their tokens. After an error it
// gives nothing back, so that a server that does not answer delays it by one timeout.
func (ls *leases) sweep(all bool) {
	var err error
	ls.keys.Range(func(key string, x *lease) bool {
		x.mu.Lock()
		c := x.claim.Load()
		x.gone = all || x.pending == nil && (c == nil || ls.now() >= c.end)
		gone := x.gone
		x.mu.Unlock()
		if gone {
			ls.keys.Delete(key)
			if c != nil && err == nil {
				err = ls.giveBack(context.Background(), key, c)
			}
		}
		return true
	})
}

// forget makes key's lease empty, and gives nothing back.
func (ls *leases) forget(key string) {
	if ls == nil {
		return
	}
	if x, ok := ls.keys.Load(key); ok {
		if c := x.claim.Load(); c != nil {
			c.left.Store(0)
		}
	}
}

// close gives back the tokens of all leases. Further calls make trips.
func (ls *leases) close() {
	if ls == nil {
		return
	}
	ls.mu.Lock()
	ls.closed = true
	if ls.timer != nil && ls.timer.Stop() {
		ls.sweeper.Done()
	}
	ls.mu.Unlock()
	ls.sweeper.Wait()
	ls.sweep(true)
}
