package replay

import (
	"slices"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/internal/compositekey"
)

func mustKeyer(t testing.TB, prefix int, names ...string) *keyer {
	t.Helper()
	k, err := newKeyer(&Options{Keys: names, IPv6Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestKeyParts(t *testing.T) {
	k, err := newKeyer(&Options{Keys: []string{"path", "tenant.id", "user", "host", "plan"}})
	if err != nil || !slices.Equal(k.fields(), []string{"tenant.id", "plan"}) {
		t.Fatalf("fields %q, %v", k.fields(), err)
	}
	rec := &accesslog.Record{User: []byte("eve"), Host: []byte("h"), Path: []byte("/p"),
		Fields: [][]byte{[]byte("t"), nil}}
	want := []string{"/p", "t", "eve", "h", ""}
	if got := compositekey.Parts(string(k.key(rec))); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if !slices.Equal(k.missing, []uint64{0, 0, 0, 0, 1}) {
		t.Errorf("missing %v, want only plan, once", k.missing)
	}
}

// A host has one spelling, as in the key of a policy.
func TestHostsAreOneKeyInAllSpellings(t *testing.T) {
	k := mustKeyer(t, 64, "host", "ip")
	for host, want := range map[string]string{
		"h.example": "h.example", "H.Example:443": "h.example", ":80": ":80", "": "",
	} {
		key := k.key(&accesslog.Record{Host: []byte(host), Peer: []byte("::ffff:192.0.2.1")})
		if got := compositekey.Parts(string(key)); !slices.Equal(got, []string{want, "192.0.2.1"}) {
			t.Errorf("%q: %q, want %q", host, got, want)
		}
	}
}

func TestLongPartsAreReplacedByADigest(t *testing.T) {
	k := mustKeyer(t, 64, "path", "user")
	keyOf := func(path string) string {
		return string(k.key(&accesslog.Record{Path: []byte(path), User: []byte("u")}))
	}
	long := "/" + strings.Repeat("é", 500_000)
	const want = "sha256:09564ea953d5f71dcdf727d47df589f8"
	if got := compositekey.Parts(keyOf(long))[0]; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := compositekey.Parts(keyOf(long[:256]))[0]; len(got) != 256 || got != long[:256] {
		t.Errorf("a path of 256 bytes came back as %q", got)
	}
	// A path that differs only at the end, or that looks like a digest, has another key.
	seen := make(map[string]bool)
	paths := []string{long, long + "x", long + "y", long[:257], compositekey.Parts(keyOf(long))[0]}
	for _, path := range paths {
		key := keyOf(path)
		seen[key] = true
		if len(key) > maxPart+10 {
			t.Errorf("a path of %d bytes makes a key of %d", len(path), len(key))
		}
	}
	if len(seen) != len(paths) {
		t.Errorf("%d keys for %d paths", len(seen), len(paths))
	}
}
