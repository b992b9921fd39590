package config

import (
	"crypto/sha256"
	"unsafe"
)

// maxPart is the length of the longest value that is a part of a key, in bytes. It bounds the
// memory of a key. A longer value is replaced by its SHA-256.
const maxPart = 64

// digest hashes the bytes of v in place, because v may be a megabyte.
func digest(v string) []byte {
	sum := sha256.Sum256(unsafe.Slice(unsafe.StringData(v), len(v)))
	return sum[:]
}
