package daemon

import (
	"crypto/sha256"
	"encoding/hex"
)

// Hash returns a short hash of a secret, because people compare hashes in a log.
func Hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256:" + hex.EncodeToString(sum[:6])
}
