package lru

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"
	"unsafe"
)

// node is a value and its key in one allocation. So the comparison of a key loads the value, too,
// and a value leads to its key.
//
// A string key is not in a node: its length and its bytes follow the value, in an allocation
// without pointers.
type node[K comparable, V any] struct {
	value V
	key   K
}

// tagged is a value, or a node, behind a tag.
type tagged[T any] struct {
	tag   uint64
	value T
}

// New returns a zero value without a key, behind the tag unless that is 0.
func New[T any](tag uint64) *T {
	if tag == 0 {
		return new(T)
	}
	return &(&tagged[T]{tag: tag}).value
}

// TagOf returns the tag of v, which must have one.
func TagOf[V any](v *V) uint64 { return *(*uint64)(unsafe.Add(unsafe.Pointer(v), -8)) }

// longText is the length byte of a string key of 255 bytes or more. The length itself follows in
// eight bytes. A shorter key has its length in the length byte.
const longText = 255

// nodes makes values with their keys, and reads and hashes the keys.
type nodes[K comparable, V any] struct {
	hasher  hasher[K]
	strings []uintptr // offsets of the strings in a key
}

func newNodes[K comparable, V any]() nodes[K, V] {
	k, v := reflect.TypeFor[K](), reflect.TypeFor[V]()
	n := nodes[K, V]{hasher: newHasher[K]()}
	parts(k, 0, func(part reflect.Type, offset uintptr) {
		switch part.Kind() {
		case reflect.Interface:
			panic(fmt.Sprintf("lru: the key type %v contains an interface", k))
		case reflect.String:
			n.strings = append(n.strings, offset)
		}
	})
	parts(v, 0, func(part reflect.Type, _ uintptr) {
		switch part.Kind() {
		case reflect.Pointer, reflect.Interface, reflect.String, reflect.Slice, reflect.Map,
			reflect.Chan, reflect.Func, reflect.UnsafePointer:
			panic(fmt.Sprintf("lru: the value type %v contains a pointer", v))
		}
	})
	return n
}

// newValue returns a zero value in front of a copy of key, and behind the tag unless that is 0. The
// copy shares no memory with the caller's key, whose strings may be parts of a buffer.
func (n *nodes[K, V]) newValue(key K, tag uint64) *V {
	if n.hasher.kind != text {
		made := New[node[K, V]](tag)
		made.key = key
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
	size, front := int(unsafe.Sizeof(v)), int(min(tag, 1)) // front: the words of the tag
	words := make([]uint64, front+(size+header+len(text)+7)/8)
	words[0] = tag
	made := unsafe.Pointer(&words[front])
	bytes := unsafe.Slice((*byte)(unsafe.Add(made, size)), header+len(text))
	bytes[0] = byte(min(len(text), longText))
	if len(text) >= longText {
		binary.NativeEndian.PutUint64(bytes[1:], uint64(len(text)))
	}
	copy(bytes[header:], text)
	return (*V)(made)
}

// keyOf returns the key of v, without a copy.
func (n *nodes[K, V]) keyOf(v *V) K {
	if n.hasher.kind == text {
		text := textOf(v)
		return *(*K)(unsafe.Pointer(&text))
	}
	return (*node[K, V])(unsafe.Pointer(v)).key
}

// hasKey reports whether key is the key of v.
func (n *nodes[K, V]) hasKey(v *V, key K) bool {
	if n.hasher.kind == text {
		return textOf(v) == *(*string)(unsafe.Pointer(&key))
	}
	return (*node[K, V])(unsafe.Pointer(v)).key == key
}

// textAt returns where the length of a string key is, in front of its bytes.
func textAt[V any](v *V) unsafe.Pointer {
	return unsafe.Add(unsafe.Pointer(v), unsafe.Sizeof(*v))
}

func textOf[V any](v *V) string {
	p := textAt(v)
	if n := *(*byte)(p); n < longText {
		return unsafe.String((*byte)(unsafe.Add(p, 1)), int(n))
	}
	n := binary.NativeEndian.Uint64(unsafe.Slice((*byte)(unsafe.Add(p, 1)), 8))
	return unsafe.String((*byte)(unsafe.Add(p, 9)), int(n))
}

// shortText is a text of 8 to 16 bytes, as most addresses are: its first and its last eight bytes,
// which may overlap, and its length. A look-up hashes and compares it without a call.
type shortText struct{ head, tail, size uint64 }

// isShort reports whether key is a short text, and shortTextOf returns it.
func (n *nodes[K, V]) isShort(key *K) bool {
	return n.hasher.kind == text && uint(len(*(*string)(unsafe.Pointer(key)))-8) <= 8
}

func shortTextOf[K any](key *K) shortText {
	text := *(*string)(unsafe.Pointer(key))
	p := unsafe.Pointer(unsafe.StringData(text))
	return shortText{wordAt(p, 0), wordAt(p, len(text)-8), uint64(len(text))}
}

// isAt reports whether s is the key at p, which textAt returns.
func (s shortText) isAt(p unsafe.Pointer) bool {
	return s.size == uint64(*(*byte)(p)) &&
		s.head == wordAt(p, 1) && s.tail == wordAt(p, int(s.size)-7)
}

// wordAt returns the eight bytes at an offset of p.
func wordAt(p unsafe.Pointer, offset int) uint64 {
	return binary.LittleEndian.Uint64((*[8]byte)(unsafe.Add(p, offset))[:])
}

// parts calls f for the parts of a value of type t, with their offsets: the fields and elements
// that == compares, and that are no structs or arrays themselves.
func parts(t reflect.Type, offset uintptr, f func(part reflect.Type, offset uintptr)) {
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			if field := t.Field(i); field.Name != "_" {
				parts(field.Type, offset+field.Offset, f)
			}
		}
	case reflect.Array:
		for i := range t.Len() {
			parts(t.Elem(), offset+uintptr(i)*t.Elem().Size(), f)
		}
	default:
		f(t, offset)
	}
}
