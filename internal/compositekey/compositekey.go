// Package compositekey makes one key of several parts. Different lists of parts have different
// keys, whatever bytes the parts contain.
package compositekey

import (
	"encoding/binary"
	"encoding/hex"
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

// Separator is between the parts of a key in text. No part has it.
const Separator = ','

// AppendText appends a part to a key that a person can read and type. Letters, digits and -._~:/@+
// stand for themselves, and every other byte is a percent sign and two hexadecimal digits, as in a
// URL. Different lists of the same number of parts, with a Separator between them, have different
// keys.
func AppendText[T string | []byte](key []byte, part T) []byte {
	for i := range len(part) {
		if b := part[i]; plain[b] {
			key = append(key, b)
		} else {
			key = append(key, '%', upper[b>>4], upper[b&15])
		}
	}
	return key
}

// IsPlain reports whether AppendText appends the part as it is.
func IsPlain(part string) bool {
	for i := range len(part) {
		if !plain[part[i]] {
			return false
		}
	}
	return true
}

// AppendTextDigest appends a SHA-256 that stands for a longer part: sha256(…), in hexadecimal. No
// part has parentheses.
func AppendTextDigest[T string | []byte](key []byte, digest T) []byte {
	key = append(key, "sha256("...)
	key = hex.AppendEncode(key, []byte(digest))
	return append(key, ')')
}

const upper = "0123456789ABCDEF"

var plain = func() (is [256]bool) {
	for _, b := range []byte("-._~:/@+") {
		is[b] = true
	}
	for b := range 26 {
		is['a'+b], is['A'+b] = true, true
	}
	for b := range 10 {
		is['0'+b] = true
	}
	return is
}()
