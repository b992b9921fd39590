package lru

import (
	"reflect"
	"strings"
	"unsafe"
)

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

// clone returns key with strings of its own: the caller's may be slices of a large
// buffer, which a table of them would keep alive.
func (m *Map[K, V]) clone(key K) K {
	for _, at := range m.strings {
		s := (*string)(unsafe.Add(unsafe.Pointer(&key), at))
		*s = strings.Clone(*s)
	}
	return key
}
