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
	tiers := clone(tiersOf(l))
	for i := range tiers.Len() {
		p := tiers.Index(i)
		c := reflect.New(p.Type().Elem())
		c.Elem().Set(p.Elem())
		for i := range c.Elem().NumField() {
			f := open(c.Elem().Field(i))
			f.Set(clone(f))
		}
		p.Set(c)
	}
	return Limit{tiers}
}

// Use makes l use the limit, unless the bucket of key has got another capacity since. The function
// that Use returns makes l use the present limit again.
func (e Limit) Use(l *mutex.TokenBucket, key string) (restore func()) {
	if !e.tiers.IsValid() {
		return func() {}
	}
	buckets := reflect.ValueOf(l).Elem().FieldByName("buckets")
	if b := buckets.MapIndex(reflect.ValueOf(key)); b.IsValid() {
		tier := e.tiers.Index(int(b.Elem().FieldByName("tier").Int()))
		if int(b.Elem().FieldByName("era").Int()) >= tier.Elem().FieldByName("eras").Len() {
			return func() {}
		}
	}
	v := tiersOf(l)
	present := reflect.ValueOf(v.Interface())
	v.Set(e.tiers)
	return func() { v.Set(present) }
}

// tiersOf returns the variable in which l holds its limits.
func tiersOf(l *mutex.TokenBucket) reflect.Value {
	return open(reflect.ValueOf(l).Elem().FieldByName("tiers"))
}

// clone returns a copy of a slice.
func clone(s reflect.Value) reflect.Value {
	return reflect.AppendSlice(reflect.MakeSlice(s.Type(), 0, s.Len()), s)
}

// open returns the variable v, which may be an unexported field, such that it can be set.
func open(v reflect.Value) reflect.Value {
	return reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
}
