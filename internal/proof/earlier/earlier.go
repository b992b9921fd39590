// Package earlier lets tb/mutex decide a call by a limit that it had before. A call that is under
// way during a SetLimit may be decided by either limit, also after a call that has already seen the
// new one. The package reads the fields of tb/mutex by reflection, so that the reference has no
// method for tests.
package earlier

import (
	"reflect"
	"unsafe"

	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// Limit is the limit of a limiter, or of all its tiers, as tb/mutex holds it. The zero Limit is
// none.
type Limit struct{ tiers reflect.Value }

// Of returns the present limit of l.
func Of(l *mutex.TokenBucket) Limit {
	tiers := tiersOf(l)
	return Limit{reflect.AppendSlice(reflect.MakeSlice(tiers.Type(), 0, tiers.Len()), tiers)}
}

// Use makes l use the limit, unless the bucket of key has got a later one since. The function that
// Use returns makes l use the present limit again.
func (e Limit) Use(l *mutex.TokenBucket, key string) (restore func()) {
	if !e.tiers.IsValid() {
		return func() {}
	}
	buckets := reflect.ValueOf(l).Elem().FieldByName("buckets")
	if b := buckets.MapIndex(reflect.ValueOf(key)); b.IsValid() {
		has := b.Elem().FieldByName("limit")
		earlier := e.tiers.Index(int(has.Elem().FieldByName("tier").Int()))
		for later := next(earlier); !later.IsNil(); later = next(later) {
			if later.Pointer() == has.Pointer() {
				return func() {}
			}
		}
	}
	var present []func()
	set := func(v, to reflect.Value) {
		was := reflect.ValueOf(v.Interface())
		present = append(present, func() { v.Set(was) })
		v.Set(to)
	}
	set(tiersOf(l), e.tiers)
	for i := range e.tiers.Len() { // the limit is as if it had not changed
		later := next(e.tiers.Index(i))
		set(later, reflect.Zero(later.Type()))
	}
	return func() {
		for _, again := range present {
			again()
		}
	}
}

// next returns the variable in which a limit holds the limit that follows it.
func next(limit reflect.Value) reflect.Value { return open(limit.Elem().FieldByName("next")) }

// tiersOf returns the variable in which l holds its limits.
func tiersOf(l *mutex.TokenBucket) reflect.Value {
	return open(reflect.ValueOf(l).Elem().FieldByName("tiers"))
}

// open returns the variable v, which may be an unexported field, such that it can be set.
func open(v reflect.Value) reflect.Value {
	return reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
}
