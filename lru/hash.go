package lru

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"unsafe"
)

// hasher returns a hash function for keys of type K, or nil if the map's own, which
// goes through a description of the type, is as good.
//
// Keys are mostly short strings or addresses, and their hash is a good part of what a
// look-up costs: 8 ns for a string of 14 bytes and 21 for a netip.Addr, which this
// makes 5 and 7.
func hasher[K comparable]() func(key K, seed uint64) uint64 {
	secret := rand.Uint64()
	t := reflect.TypeFor[K]()
	switch {
	case t.Kind() == reflect.String:
		return func(key K, seed uint64) uint64 {
			s := *(*string)(unsafe.Pointer(&key))
			return mix(unsafe.Slice(unsafe.StringData(s), len(s)), seed, secret)
		}
	case isFlat(t):
		return func(key K, seed uint64) uint64 {
			b := unsafe.Slice((*byte)(unsafe.Pointer(&key)), unsafe.Sizeof(key))
			return mix(b, seed, secret)
		}
	case t.Kind() == reflect.Interface: // xsync does not cover these
		s := maphash.MakeSeed()
		return func(key K, seed uint64) uint64 { return maphash.Comparable(s, key) ^ seed }
	}
	return nil
}

// mix is a hash of b, of the kind that wyhash and the runtime without AES are: sixteen
// bytes at a time are multiplied with each other, under a seed and a secret that
// nobody outside knows. See https://github.com/wangyi-fudan/wyhash.
func mix(b []byte, seed, secret uint64) uint64 {
	n := uint64(len(b))
	for ; len(b) > 16; b = b[16:] {
		seed = fold(binary.LittleEndian.Uint64(b)^seed, binary.LittleEndian.Uint64(b[8:])^secret)
	}
	var first, last uint64
	switch {
	case len(b) >= 8:
		first = binary.LittleEndian.Uint64(b)
		last = binary.LittleEndian.Uint64(b[len(b)-8:])
	case len(b) >= 4:
		first = uint64(binary.LittleEndian.Uint32(b))
		last = uint64(binary.LittleEndian.Uint32(b[len(b)-4:]))
	case len(b) > 0:
		first = uint64(b[0])<<16 | uint64(b[len(b)/2])<<8 | uint64(b[len(b)-1])
	}
	return fold(fold(first^seed, last^secret), secret^n)
}

func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// isFlat says whether values of type t are equal if and only if their memory is.
func isFlat(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.Pointer, reflect.Chan, reflect.UnsafePointer,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return true
	case reflect.Array:
		return isFlat(t.Elem())
	case reflect.Struct:
		var end uintptr
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Offset != end || f.Name == "_" || !isFlat(f.Type) {
				return false
			}
			end += f.Type.Size()
		}
		return end == t.Size()
	}
	return false
}
