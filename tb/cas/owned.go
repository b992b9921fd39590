package cas

import (
	"reflect"
	"strings"
	"unsafe"
)

// owner makes what the table keeps of a key: a copy of it that shares no memory with
// the caller's, whose strings may be slices of a large buffer, and a bucket.
type owner[K comparable] struct {
	isString bool
	strings  []uintptr // where in a key the strings are
}

func newOwner[K comparable]() owner[K] {
	t := reflect.TypeFor[K]()
	return owner[K]{t.Kind() == reflect.String, stringsIn(t, 0, nil)}
}

// own returns the table's copy of key, and a bucket with the given base and word.
//
// A key that is a string is copied to just behind its bucket, in one allocation: so
// both are in the same cache line as a rule, and who has compared the key has loaded
// the bucket. The words are free of pointers, and either pointer keeps both alive.
func (o *owner[K]) own(key K, base, word uint64) (K, *bucket) {
	if o.isString {
		s := (*string)(unsafe.Pointer(&key))
		words := make([]uint64, bucketWords+(len(*s)+7)/8)
		if len(*s) > 0 {
			tail := unsafe.Slice((*byte)(unsafe.Pointer(&words[bucketWords])), len(*s))
			copy(tail, *s)
			*s = unsafe.String(&tail[0], len(tail))
		}
		return key, (*bucket)(unsafe.Pointer(&words[0])).set(base, word)
	}
	for _, at := range o.strings {
		s := (*string)(unsafe.Add(unsafe.Pointer(&key), at))
		*s = strings.Clone(*s)
	}
	return key, new(bucket).set(base, word)
}

// bucketWords is the size of a bucket in words.
const bucketWords = int(unsafe.Sizeof(bucket{}) / 8)

// lost says whether a key, such as a NaN, would never be found again in a table.
func lost[K comparable](key K) bool {
	return key != key //nolint:gocritic // that is what a NaN is known by
}

// stringsIn appends to offsets where, from base on, the strings in a value of type t
// are. Strings behind an interface are not found.
func stringsIn(t reflect.Type, base uintptr, offsets []uintptr) []uintptr {
	switch t.Kind() {
	case reflect.String:
		offsets = append(offsets, base)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			offsets = stringsIn(f.Type, base+f.Offset, offsets)
		}
	case reflect.Array:
		for i := range t.Len() {
			offsets = stringsIn(t.Elem(), base+uintptr(i)*t.Elem().Size(), offsets)
		}
	}
	return offsets
}
