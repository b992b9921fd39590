// Package compositekey makes one key of several parts. Different lists of parts have different
// keys, whatever bytes the parts contain.
package compositekey

import (
	"encoding/binary"
	"iter"
)

// Append appends a part to a key: its length, and its bytes.
func Append[T string | []byte](key []byte, part T) []byte {
	return append(binary.AppendUvarint(key, uint64(len(part))<<1), part...)
}

// AppendDigest appends a digest that stands for a longer part. It is not equal to a part with
// the same bytes.
func AppendDigest[T string | []byte](key []byte, digest T) []byte {
	return append(binary.AppendUvarint(key, uint64(len(digest))<<1|1), digest...)
}

// Parts returns the parts of a key that Append and AppendDigest made.
func Parts(key string) (parts []string) {
	for part := range All(key) {
		parts = append(parts, part)
	}
	return parts
}

// All yields the parts of a key that Append and AppendDigest made, and whether each is a digest.
func All(key string) iter.Seq2[string, bool] {
	return func(yield func(string, bool) bool) {
		for rest := []byte(key); len(rest) > 0; {
			head, width := binary.Uvarint(rest)
			end := width + int(head>>1)
			if !yield(string(rest[width:end]), head&1 == 1) {
				return
			}
			rest = rest[end:]
		}
	}
}
