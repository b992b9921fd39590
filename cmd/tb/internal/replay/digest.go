package replay

import (
	"crypto/sha256"
	"encoding/hex"
	"unicode/utf8"
)

// maxPart is how long a part of a key may be, in bytes, and is kept as it is. Clients choose
// their paths, up to megabytes, and keys are held in tables whose bounds count keys.
const maxPart = 256

// digestPrefix and digestSum are how many bytes of a part and of its sum are in its digest:
// with the label between them, 80 characters, which a report shows in full. Two parts with
// the same sum of 128 bits are not found even on purpose.
const (
	digestPrefix = 40
	digestSum    = 16
)

// appendDigest appends what stands for a part that is too long: how it begins, and its
// SHA-256.
func appendDigest(b, part []byte) []byte {
	n := digestPrefix
	for n > 0 && !utf8.RuneStart(part[n]) {
		n--
	}
	sum := sha256.Sum256(part)
	b = append(b, part[:n]...)
	b = append(b, "…sha256:"...)
	return hex.AppendEncode(b, sum[:digestSum])
}
