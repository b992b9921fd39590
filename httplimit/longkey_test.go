package httplimit

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
)

func TestLongKeysAreHashed(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("r", `["header:a"]`, 1, "")))
	long := strings.Repeat("x", 129)
	for _, v := range []string{long[:128], long, long + "y", strings.Repeat("x", 1<<20)} {
		s.granted(1, "A: "+v)
	}
	if part := s.Explain(request("A: " + long[:128]))[0].Key[0]; part.Value != long[:128] {
		t.Errorf("Explain has the key %q", part.Value)
	}
	sum := sha256.Sum256([]byte(long)) // may be sent too, and is another value
	s.granted(1, "A: "+string(sum[:]))
	for bytes, want := range map[int]int{63: 66, 128: 132, 129: 35, 1 << 20: 35} {
		if got := len(bucketKey(t, "A: "+strings.Repeat("x", bytes))); got != want {
			t.Errorf("a value of %d bytes: the key has %d bytes, want %d", bytes, got, want)
		}
	}
}

// bucketKey returns the key of a request's bucket.
func bucketKey(t *testing.T, field string, opts ...Option) string {
	s := newSite(t, jsonRules("", jsonRule("r", `["header:a", "header:b"]`, 1, "")), opts...)
	c := s.begin(request(field, "B: b"))
	defer c.end()
	c.findRules()
	return strings.Clone(c.entries[0].key)
}

// An operator can compute the key in a store from the request, also a long one.
func TestKeysInAStoreAreText(t *testing.T) {
	long := strings.Repeat("x", 128)
	for value, want := range map[string]string{
		"alice":    "alice,b",
		"a,b {c}":  "a%2Cb%20%7Bc%7D,b",
		long:       long + ",b",
		long + "y": fmt.Sprintf("sha256(%x),b", sha256.Sum256([]byte(long+"y"))),
	} {
		if got := bucketKey(t, "A: "+value, WithStore(referenceStore{t: t})); got != want {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
}
