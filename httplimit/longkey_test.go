package httplimit

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
)

func TestLongKeysAreHashed(t *testing.T) {
	for _, length := range []int{DefaultMaxKeyLength, 1024} {
		s := newSite(t, jsonRules("", jsonRule("r", `["header:a"]`, 1, "")), WithMaxKeyLength(length))
		long := strings.Repeat("x", 129)
		for _, v := range []string{long[:64], long[:65], long[:128], long, long + "y",
			strings.Repeat("x", 1<<20)} {
			s.granted(1, "A: "+v)
		}
		sum := sha256.Sum256([]byte(long)) // may be sent too, and is another value
		s.granted(1, "A: "+string(sum[:]))
	}
	for _, c := range []struct{ max, bytes, want int }{
		{0, 63, 64}, {0, 64, 17}, {0, 128, 17}, {0, 129, 33}, {0, 1 << 20, 33},
		{32, 31, 32}, {32, 32, 17}, {32, 129, 17},
		{1024, 63, 64}, {1024, 128, 130}, {1024, 129, 33}, {1024, 1 << 20, 33},
	} {
		var opts []Option
		if c.max > 0 {
			opts = append(opts, WithMaxKeyLength(c.max))
		}
		s := newSite(t, jsonRules("", jsonRule("r", `["header:a"]`, 1, "")), opts...)
		call := s.begin(request("A: " + strings.Repeat("x", c.bytes)))
		call.findRules()
		if got := len(call.entries[0].key); got != c.want {
			t.Errorf("%+v: the key has %d bytes", c, got)
		}
		call.end()
	}
}

func TestHashesOfKeysAreKeyed(t *testing.T) {
	a, b := bucketKey(t, "A: "+strings.Repeat("x", 100)), bucketKey(t, "A: "+strings.Repeat("x", 100))
	if a == b {
		t.Error("two processes have the same hashes")
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
		if got := bucketKey(t, "A: "+value, WithStore(answering{})); got != want {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
}
