package cas

import "github.com/seed-181794aa/ratelimit/tb"

// SetLimit makes limit the limit of all keys, or of tier 0 if there are several. It takes constant
// time, and no call waits for it. Each bucket keeps its tokens, but not more than the new capacity,
// and its debt. C1 holds across the change, with the supply of both limits. For a call that is
// under way while SetLimit is, the change may come before or after it. A RetryAfter or a Delay that
// was returned before is one of the old limit. Package tb states the contract of a change.
//
// A bucket moves at its next grant: see the package documentation. Then Cancel of an earlier grant
// gives nothing back. After a change that makes buckets full sooner, the order of eviction is
// not exact until the times have passed at which the old limit would have filled the buckets. A
// bucket that is ahead of the clock by more than a minute may be full after more than 64 changes
// without a use.
//
// The limiter remembers the last 64 limits, all of the last minute, and all before under which
// a bucket may have lost tokens that it has not got back: a capacity, up to twice the deepest debt
// of any bucket, and what the limit supplied in a minute. Each takes about 300 bytes.
//
// SetLimit returns a *tb.ConfigError, and changes nothing, if the limit is out of range, or if no
// bases are left. There are bases for at least 100 million changes. To set the limit that is set
// already changes nothing.
func (l *Limiter[K]) SetLimit(limit tb.Limit) error { return l.SetTier(0, limit) }

// Limit returns the limit of all keys, or of tier 0 if there are several.
func (l *Limiter[K]) Limit() tb.Limit { return l.limits.tier(0).Load().limit }

// SetLimit is Limiter.SetLimit for the bucket. A bucket that was never used keeps the tokens of its
// old capacity.
func (b *Bucket) SetLimit(limit tb.Limit) error {
	if b.load() == nil && limit.Validate() == nil {
		m := b.layout()
		p := m.positionAt(b.now())
		m.reach(p.blocks)
		b.cell.CompareAndSwap(nil, new(cell).init(p.blocks, m.pack(p.rest, 0)))
	}
	return b.limits.setLimit(&b.limits.one, limit, &b.clock)
}

// Limit returns the limit of the bucket.
func (b *Bucket) Limit() tb.Limit { return b.limits.one.Load().limit }
