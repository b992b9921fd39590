package lru

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unsafe"
)

// A value and its key are one allocation, the value in front. So a caller that compares
// the key has the value in the same cache line, and the order can tell a value's key.
//
// Behind a string key's value lie the length of the key and its bytes, in an allocation
// that is free of pointers. All other keys lie in a node.
type node[K comparable, V any] struct {
	value V
	key   K
}

// longText is the length byte of a key that is as long or longer. The length then
// follows in eight bytes.
const longText = 255

// nodes makes nodes and reads keys.
type nodes[K comparable, V any] struct {
	isText  bool
	strings []uintptr // offsets of the strings in a key
}

func newNodes[K comparable, V any]() nodes[K, V] {
	k, v := reflect.TypeFor[K](), reflect.TypeFor[V]()
	switch {
	case holds(k, reflect.Interface):
		panic(fmt.Sprintf("lru: the key type %v contains an interface", k))
	case holds(v, reflect.Pointer, reflect.Interface, reflect.String, reflect.Slice, reflect.Map,
		reflect.Chan, reflect.Func, reflect.UnsafePointer):
		panic(fmt.Sprintf("lru: the value type %v contains a pointer", v))
	}
	return nodes[K, V]{k.Kind() == reflect.String, stringsIn(k, 0, nil)}
}

// make returns a value of zero in front of a copy of key that shares no memory with the
// caller's, whose strings may be slices of a large buffer.
func (n *nodes[K, V]) make(key K) *V {
	if !n.isText {
		made := &node[K, V]{key: key}
		for _, offset := range n.strings {
			s := (*string)(unsafe.Add(unsafe.Pointer(&made.key), offset))
			*s = strings.Clone(*s)
		}
		return &made.value
	}
	text := *(*string)(unsafe.Pointer(&key))
	header := 1
	if len(text) >= longText {
		header += 8
	}
	var v V
	size := int(unsafe.Sizeof(v)) // a multiple of 8, or the rest would not be aligned
	words := make([]uint64, (size+header+len(text)+7)/8)
	behind := unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(&words[0]), size)), header+len(text))
	behind[0] = byte(min(len(text), longText))
	if len(text) >= longText {
		binary.NativeEndian.PutUint64(behind[1:], uint64(len(text)))
	}
	copy(behind[header:], text)
	return (*V)(unsafe.Pointer(&words[0]))
}

// key returns the key behind v. It is valid as long as v is.
func (n *nodes[K, V]) key(v *V) K {
	if n.isText {
		text := textBehind(v)
		return *(*K)(unsafe.Pointer(&text))
	}
	return (*node[K, V])(unsafe.Pointer(v)).key
}

// has reports whether key is the key behind v.
func (n *nodes[K, V]) has(v *V, key K) bool {
	if n.isText {
		return textBehind(v) == *(*string)(unsafe.Pointer(&key))
	}
	return (*node[K, V])(unsafe.Pointer(v)).key == key
}

func textBehind[V any](v *V) string {
	p := unsafe.Add(unsafe.Pointer(v), unsafe.Sizeof(*v))
	if n := *(*byte)(p); n < longText {
		return unsafe.String((*byte)(unsafe.Add(p, 1)), int(n))
	}
	n := binary.NativeEndian.Uint64(unsafe.Slice((*byte)(unsafe.Add(p, 1)), 8))
	return unsafe.String((*byte)(unsafe.Add(p, 9)), int(n))
}

// stringsIn appends to offsets where, from base on, the strings in a value of type t
// are.
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

// holds reports whether a value of type t holds one of the given kinds, or is one.
func holds(t reflect.Type, kinds ...reflect.Kind) bool {
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			if holds(t.Field(i).Type, kinds...) {
				return true
			}
		}
	case reflect.Array:
		return t.Len() > 0 && holds(t.Elem(), kinds...)
	}
	return slices.Contains(kinds, t.Kind())
}
