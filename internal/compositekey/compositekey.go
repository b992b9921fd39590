// Package compositekey makes one key of several parts. Different lists of parts have different
// keys, whatever bytes the parts contain.
package compositekey

import "encoding/binary"

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
	for b := []byte(key); len(b) > 0; {
		head, width := binary.Uvarint(b)
		end := width + int(head>>1)
		parts = append(parts, string(b[width:end]))
		b = b[end:]
	}
	return parts
}
