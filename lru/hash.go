package lru

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"unsafe"
)

// hasher is the hash function of a table. It has two random words and a random seed, which are
// secret, so a client cannot find keys with the same hash. BenchmarkHash compares it with the
// standard library, whose hash takes longer.
type hasher[K comparable] struct {
	kind    kind
	first   uint64
	second  uint64
	maphash func(key K) uint64 // of the standard library
}

// kind is the way to hash a key.
type kind int

const (
	general kind = iota // by the standard library
	text                // the bytes of a string
	flat                // the memory of the key
)

func newHasher[K comparable]() hasher[K] {
	seed := maphash.MakeSeed()
	h := hasher[K]{
		first:   rand.Uint64(),
		second:  rand.Uint64(),
		maphash: func(key K) uint64 { return maphash.Comparable(seed, key) },
	}
	switch t := reflect.TypeFor[K](); {
	case t.Kind() == reflect.String:
		h.kind = text
	case isFlat(t):
		h.kind = flat
	}
	return h
}

func (h *hasher[K]) hash(key K) uint64 {
	switch h.kind {
	case text:
		return mix([]byte(*(*string)(unsafe.Pointer(&key))), h.first, h.second)
	case flat:
		b := unsafe.Slice((*byte)(unsafe.Pointer(&key)), unsafe.Sizeof(key))
		return mix(b, h.first, h.second)
	}
	if h.maphash == nil {
		panic("lru: the zero Map, and a limiter that was not made by New: Init has not been called")
	}
	return h.maphash(key)
}

// mix is a hash of b in the manner of wyhash (https://github.com/wangyi-fudan/wyhash) and of the
// runtime without AES: it multiplies the two halves of sixteen bytes, each XORed with a secret.
// As in wyhash's last version, all 128 bits of a product go into the next product. If they were
// folded to 64 bits, the pairs (a, b) and (a, ^b) would have the same result in 10⁻⁸ of all
// cases, whatever the secrets are.
func mix(b []byte, first, second uint64) uint64 {
	n := uint64(len(b))
	for ; len(b) > 16; b = b[16:] {
		head, tail := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
		hi, lo := bits.Mul64(head^first, tail^second)
		first, second = second^lo, first^hi
	}
	var head, tail uint64
	switch {
	case len(b) >= 8:
		head = binary.LittleEndian.Uint64(b)
		tail = binary.LittleEndian.Uint64(b[len(b)-8:])
	case len(b) >= 4:
		head = uint64(binary.LittleEndian.Uint32(b))
		tail = uint64(binary.LittleEndian.Uint32(b[len(b)-4:]))
	case len(b) > 0:
		head = uint64(b[0])<<16 | uint64(b[len(b)/2])<<8 | uint64(b[len(b)-1])
	}
	return mixWords(head, tail, n, first, second)
}

// mixWords is the last step of mix.
func mixWords(head, tail, n, first, second uint64) uint64 {
	// In a key x of eight bytes head and tail are equal. Without the rotation, the key
	// x^first^second would have the same two factors in the other order.
	hi, lo := bits.Mul64(head^first, bits.RotateLeft64(tail, 32)^second)
	return fold(lo^first, hi^second^n)
}

func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// isFlat reports whether two values of type t are equal if and only if their memory is equal.
func isFlat(t reflect.Type) bool {
	var compared uintptr // bytes, without padding
	parts(t, 0, func(part reflect.Type, _ uintptr) {
		switch part.Kind() {
		case reflect.Bool, reflect.Pointer, reflect.Chan, reflect.UnsafePointer,
			reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
			reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
			reflect.Uintptr:
			compared += part.Size()
		}
	})
	return compared == t.Size()
}
