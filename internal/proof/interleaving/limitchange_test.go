package interleaving

import (
	"context"
	"reflect"
	"unsafe"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// The methods of the reference for reservations and changes of the limit.

func (r reference) Level(ctx context.Context, key string) (tb.Level, error) {
	return r.TokenBucket.Level(ctx, key)
}

func (r reference) Reserve(
	ctx context.Context, key string, cost float64,
) (tb.Reservation, error) {
	defer r.useLimit(key)()
	return r.TokenBucket.Reserve(ctx, key, cost)
}

// Cancel does nothing if the step has its second outcome.
func (r reference) Cancel(_ string, v tb.Reservation) {
	if r.caller == nil || !r.other {
		v.Cancel()
	}
}

func (r reference) Settle(key string, v tb.Reservation, actual float64) error {
	if r.caller != nil && r.other && r.shared {
		return nil
	}
	defer r.useLimit(key)()
	return v.Settle(actual)
}

func (reference) Receipt(tb.Reservation) uint64 { return 0 }

func (r reference) SetLimit(limit tb.Limit) error {
	r.earlier.limit = copyOf(limitOf(r.TokenBucket))
	return r.TokenBucket.SetLimit(limit)
}

// earlierLimit is the limit before the latest SetLimit, as tb/mutex holds it.
type earlierLimit struct{ limit reflect.Value }

// useLimit makes the limiter use the earlier limit if the step has its second outcome, and if the
// bucket of key has not got another capacity since. The function that it returns makes the limiter
// use the present limit again.
func (r reference) useLimit(key string) func() {
	if r.caller == nil || !r.other || !r.earlier.limit.IsValid() {
		return func() {}
	}
	eras := r.earlier.limit.Elem().FieldByName("eras").Len()
	buckets := reflect.ValueOf(r.TokenBucket).Elem().FieldByName("buckets")
	b := buckets.MapIndex(reflect.ValueOf(key))
	if b.IsValid() && int(b.Elem().FieldByName("era").Int()) >= eras {
		return func() {}
	}
	v := limitOf(r.TokenBucket)
	present := reflect.ValueOf(v.Interface())
	v.Set(r.earlier.limit)
	return func() { v.Set(present) }
}

// limitOf returns the variable in which l holds its limit.
func limitOf(l *mutex.TokenBucket) reflect.Value {
	return open(reflect.ValueOf(l).Elem().FieldByName("tiers").Index(0))
}

// copyOf returns a pointer to a copy of the struct that v points to. It has copies of its slices.
func copyOf(v reflect.Value) reflect.Value {
	c := reflect.New(v.Type().Elem())
	c.Elem().Set(v.Elem())
	for i := range c.Elem().NumField() {
		f := open(c.Elem().Field(i))
		f.Set(reflect.AppendSlice(reflect.MakeSlice(f.Type(), 0, f.Len()), f))
	}
	return c
}

// open returns the variable v, which may be an unexported field, such that it can be set.
func open(v reflect.Value) reflect.Value {
	return reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
}
