package cas

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/seed-181794aa/ratelimit/proof/modelcheck"
	"github.com/seed-181794aa/ratelimit/proof/modelcheck/registry"
	variant "github.com/seed-181794aa/ratelimit/proof/modelcheck/variants/tb"
	"github.com/seed-181794aa/ratelimit/tb"
)

func init() { registry.Variants["VARIANT"] = expose }

// expose makes a limiter and labels its variables.
func expose(c registry.Config) (registry.Limiter, error) {
	if c.OneBucket {
		b, err := NewBucket(c.Limit, c.Options...)
		if err != nil {
			return nil, err
		}
		b.clock.first.Label("first reading")
		b.cell.Label("cell")
		b.limits.expose(c.SetsLimit)
		return exposedBucket{b}, nil
	}
	l, err := New[string](c.Limit, c.Options...)
	if c.Tiers != nil {
		l, err = NewTiered[string](c.Tiers, c.Options...)
	}
	if err != nil {
		return nil, err
	}
	l.table.Expose(c.Keys, c.Collide)
	l.clock.first.Label("first reading")
	l.evictor.refused.Label("refused")
	l.limits.expose(c.SetsLimit)
	return exposed{l}, nil
}

// expose labels the variables of s. Only SetLimit uses the deepest debt. If no call changes the
// limit, it is so deep that no call has to record its own.
func (s *limits) expose(setsLimit bool) {
	s.one.Label("layout")
	for i := range s.tiers {
		s.tiers[i].Label(fmt.Sprint("layout of tier ", i))
	}
	s.setting.Label("lock of SetLimit")
	s.owed.Label("deepest debt")
	if !setsLimit {
		s.owed.Store(1 << 63)
	}
	s.reservations.Label("reservations")
	s.cancellations.Label("cancellations")
	s.reservations.Counts()
	s.cancellations.Counts()
	s.settled.Label()
	s.unpaid.Label()
}

// held is what a limiter keeps for a reservation.
func held[H home](r tb.Reservation) *reservation[H] {
	v := reflect.ValueOf(r).FieldByName("held")
	if v.IsNil() {
		return nil
	}
	return (*reservation[H])(v.Elem().UnsafePointer())
}

// reserved names the variables of a reservation that has just been made.
func reserved[H home](r tb.Reservation) {
	if h := held[H](r); h != nil {
		h.ended.Created("reservation")
	}
}

// receiptOf returns a digest of what a limiter keeps for a reservation.
func receiptOf[H home](r tb.Reservation) uint64 {
	h := held[H](r)
	if h == nil {
		return 0
	}
	return modelcheck.Hash([...]uint64{
		modelcheck.Identity(h.receipt.cell, "cell"), h.receipt.before, h.receipt.after,
	})
}

type exposed struct{ *Limiter[string] }

func (l exposed) CheckSize() error             { return l.table.CheckSize() }
func (l exposed) CheckTable(undone bool) error { return l.table.CheckTable(undone) }

func (l exposed) Charge(key string, cost float64) (tb.Charge, error) {
	c, err := l.Limiter.Charge(key, cost)
	return &c, err
}

func (l exposed) ChargeIn(tier int, key string, cost float64) (tb.Charge, error) {
	c, err := l.Limiter.ChargeIn(tier, key, cost)
	return &c, err
}

func (l exposed) TakeAll(
	t time.Time, charges []tb.Charge, decisions []tb.Decision,
) (bool, error) {
	_, allowed, err := variant.TakeAll(t, variant.All(charges), decisions)
	return allowed, err
}

func (l exposed) Reserve(
	ctx context.Context, key string, cost float64,
) (tb.Reservation, error) {
	r, err := l.Limiter.Reserve(ctx, key, cost)
	reserved[place[string]](r)
	return r, err
}

func (exposed) Cancel(_ string, r tb.Reservation) { r.Cancel() }
func (exposed) Receipt(r tb.Reservation) uint64   { return receiptOf[place[string]](r) }

func (exposed) Settle(_ string, r tb.Reservation, actual float64) error {
	return r.Settle(actual)
}

// Digest returns a digest of the data that the lock of the table guards.
func (e *evictor) Digest() uint64 {
	return modelcheck.Hash([...]uint64{e.earliest, e.evictedFull, e.evictedInDebt, e.forgiven.lo})
}

func (l exposed) Has(key string) bool {
	c := l.table.Find(key)
	return c != nil && c.word.Load() != evicted
}

// exposedBucket is a limiter whose keys share one bucket.
type exposedBucket struct{ *Bucket }

func (b exposedBucket) Allow(_ context.Context, _ string) (tb.Decision, error) {
	return b.Bucket.Allow(), nil
}

func (b exposedBucket) AllowAt(t time.Time, _ string, cost float64) (tb.Decision, error) {
	return b.Bucket.AllowAt(t, cost)
}

func (b exposedBucket) Peek(_ context.Context, _ string) (tb.Decision, error) {
	return b.Bucket.Peek(), nil
}

func (b exposedBucket) Hold(_ context.Context, _ string, until time.Time) error {
	b.Bucket.Hold(until)
	return nil
}

func (b exposedBucket) Level(_ context.Context, _ string) (tb.Level, error) {
	return b.Bucket.Level(), nil
}

func (b exposedBucket) Reserve(
	_ context.Context, _ string, cost float64,
) (tb.Reservation, error) {
	r, err := b.Bucket.Reserve(cost)
	reserved[*Bucket](r)
	return r, err
}

func (b exposedBucket) Charge(string, float64) (tb.Charge, error) {
	return nil, errors.New("a bucket has no charges")
}

func (b exposedBucket) ChargeIn(int, string, float64) (tb.Charge, error) {
	return nil, errors.New("a bucket has no tiers")
}

func (b exposedBucket) SetTier(int, tb.Limit) error { return errors.New("a bucket has no tiers") }

func (b exposedBucket) TakeAll(time.Time, []tb.Charge, []tb.Decision) (bool, error) {
	return false, errors.New("a bucket has no charges")
}

func (b exposedBucket) Stats() (s tb.Stats) {
	b.limits.addTo(&s)
	return s
}

func (b exposedBucket) Reset(string)          {}
func (b exposedBucket) Has(string) bool       { return b.cell.Load() != nil }
func (b exposedBucket) CheckSize() error      { return nil }
func (b exposedBucket) CheckTable(bool) error { return nil }

func (exposedBucket) Cancel(_ string, r tb.Reservation) { r.Cancel() }

func (exposedBucket) Settle(_ string, r tb.Reservation, actual float64) error {
	return r.Settle(actual)
}

func (b exposedBucket) Receipt(r tb.Reservation) uint64 { return receiptOf[*Bucket](r) }
