package compositekey

import (
	"bytes"
	"encoding/hex"
	"net/url"
	"strings"
	"testing"
)

func TestTextIsReadable(t *testing.T) {
	for part, want := range map[string]string{
		"":                "",
		"192.0.2.1":       "192.0.2.1",
		"2001:db8::/64":   "2001:db8::/64",
		"a@example.com":   "a@example.com",
		"Bearer x1_+/-~=": "Bearer%20x1_+/-~%3D",
		"a,b{c}%\x00\xff": "a%2Cb%7Bc%7D%25%00%FF",
		`*?[]\'"()`:       "%2A%3F%5B%5D%5C%27%22%28%29",
	} {
		if got := string(AppendText(nil, part)); got != want {
			t.Errorf("%q: %q, want %q", part, got, want)
		}
		if got := IsPlain(part); got != (part == want) {
			t.Errorf("%q is plain: %v", part, got)
		}
	}
	if got := string(AppendTextDigest([]byte("a,"), "\x01\xfe")); got != "a,sha256(01fe)" {
		t.Error(got)
	}
}

// part is a part of a key, or the digest of one.
type part struct {
	bytes    []byte
	isDigest bool
}

// FuzzTextIsUnambiguous reads the parts of a key back from its text. So no two lists of parts have
// one text.
func FuzzTextIsUnambiguous(f *testing.F) {
	f.Add([]byte("a\x00,\x01b"))
	f.Add([]byte("\x00\x00\x00%2C\x01sha256(61)\x00sha256(61)"))
	f.Add([]byte("192.0.2.1\x002001:db8::/64\x00{}"))
	f.Fuzz(func(t *testing.T, list []byte) {
		var parts []part
		for _, b := range bytes.Split(list, []byte{0}) {
			rest, isDigest := bytes.CutPrefix(b, []byte{1})
			parts = append(parts, part{rest, isDigest})
		}
		var key []byte
		for i, p := range parts {
			if i > 0 {
				key = append(key, Separator)
			}
			if p.isDigest {
				key = AppendTextDigest(key, p.bytes)
			} else {
				key = AppendText(key, p.bytes)
			}
		}
		for _, b := range key {
			if b <= ' ' || b > '~' || strings.IndexByte(`{}"'\*?[]`, b) >= 0 {
				t.Fatalf("%q has the byte %q", key, b)
			}
		}
		texts := strings.Split(string(key), string(Separator))
		if len(texts) != len(parts) {
			t.Fatalf("%q has %d parts, want %d", key, len(texts), len(parts))
		}
		for i, p := range parts {
			text, isDigest := strings.CutPrefix(texts[i], "sha256(")
			var got []byte
			if isDigest {
				got, _ = hex.DecodeString(strings.TrimSuffix(text, ")"))
			} else {
				value, _ := url.PathUnescape(text)
				got = []byte(value)
			}
			if isDigest != p.isDigest || !bytes.Equal(got, p.bytes) {
				t.Fatalf("%q: part %d is %q, want %q", key, i, got, p.bytes)
			}
		}
	})
}
