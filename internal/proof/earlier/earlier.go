// Package earlier lets tb/mutex decide a call by a limit that it had before. A call that is under
// way during a SetLimit may be decided by either limit, also after a call that has already seen the
// new one.
package earlier

import (
	"reflect"
	"unsafe"

	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// Limit is a limit of a limiter, as tb/mutex holds it. The zero Limit is none.
type Limit struct{ v reflect.Value }

// Of returns the present limit of l.
func Of(l *mutex.TokenBucket) Limit {
	v := limitOf(l)
	c := reflect.New(v.Type().Elem())
	c.Elem().Set(v.Elem())
	for i := range c.Elem().NumField() {
		f := open(c.Elem().Field(i))
		f.Set(reflect.AppendSlice(reflect.MakeSlice(f.Type(), 0, f.Len()), f))
	}
	return Limit{c}
}

// Use makes l use the limit, unless the bucket of key has got another capacity since. The function
// that Use returns makes l use the present limit again.
func (e Limit) Use(l *mutex.TokenBucket, key string) (restore func()) {
	if !e.v.IsValid() {
		return func() {}
	}
	eras := e.v.Elem().FieldByName("eras").Len()
	buckets := reflect.ValueOf(l).Elem().FieldByName("buckets")
	b := buckets.MapIndex(reflect.ValueOf(key))
	if b.IsValid() && int(b.Elem().FieldByName("era").Int()) >= eras {
		return func() {}
	}
	v := limitOf(l)
	present := reflect.ValueOf(v.Interface())
	v.Set(e.v)
	return func() { v.Set(present) }
}

// limitOf returns the variable in which l holds its limit.
func limitOf(l *mutex.TokenBucket) reflect.Value {
	return open(reflect.ValueOf(l).Elem().FieldByName("tiers").Index(0))
}

// open returns the variable v, which may be an unexported field, such that it can be set.
func open(v reflect.Value) reflect.Value {
	return reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
}
