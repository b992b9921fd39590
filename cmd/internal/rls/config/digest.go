package config

import (
	"crypto/sha256"
	"encoding/hex"
	"unsafe"
)

// maxPart is the length of the longest value that is a part of a key as it is, in bytes. It bounds
// the memory of a key. A longer value is replaced by its SHA-256.
const maxPart = 64

// Shorten returns a value, or its digest if it is long. A digest is longer than maxPart, so it is
// equal to no other value.
func Shorten(value string) string {
	if len(value) <= maxPart {
		return value
	}
	return "sha256:" + hex.EncodeToString(digest(value))
}

// digest hashes the bytes of v in place, because v may be a megabyte.
func digest(v string) []byte {
	sum := sha256.Sum256(unsafe.Slice(unsafe.StringData(v), len(v)))
	return sum[:]
}
