package compositekey

import (
	"bytes"
	"encoding/hex"
	"net/url"
	"slices"
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
}

// FuzzKey reads the parts of a key back from its bytes and from its text, so no two lists of parts
// have one key. Parts end with a zero byte. One that begins with the byte 1 is a digest.
func FuzzKey(f *testing.F) {
	f.Add([]byte("a\x00,\x00\x01b\x00b"))
	f.Add([]byte("\x00\x00\x00%2C\x00\x01a\x00sha256(61)"))
	f.Add([]byte("192.0.2.1\x002001:db8::/64\x00{}\x00\x01"))
	for _, length := range []int{63, 64, 1 << 14} {
		f.Add(bytes.Repeat([]byte("x"), length))
	}
	f.Fuzz(func(t *testing.T, list []byte) {
		type part struct {
			text     string
			isDigest bool
		}
		var parts []part
		var key, text []byte
		for i, b := range bytes.Split(list, []byte{0}) {
			rest, isDigest := bytes.CutPrefix(b, []byte{1})
			parts = append(parts, part{string(rest), isDigest})
			if i > 0 {
				text = append(text, Separator)
			}
			if isDigest {
				key, text = AppendDigest(key, rest), AppendTextDigest(text, rest)
			} else {
				key, text = Append(key, rest), AppendText(text, rest)
			}
		}
		var fromKey, fromText []part
		for p, isDigest := range All(string(key)) {
			fromKey = append(fromKey, part{p, isDigest})
		}
		for p := range strings.SplitSeq(string(text), string(Separator)) {
			value, err := url.PathUnescape(p)
			digest, isDigest := strings.CutPrefix(p, "sha256(")
			if isDigest {
				var data []byte
				data, err = hex.DecodeString(strings.TrimSuffix(digest, ")"))
				value = string(data)
			}
			if err != nil {
				t.Fatal(err)
			}
			fromText = append(fromText, part{value, isDigest})
		}
		if !slices.Equal(fromKey, parts) || !slices.Equal(fromText, parts) {
			t.Fatalf("%v and %v, want %v", fromKey, fromText, parts)
		}
		for i, p := range Parts(string(key)) {
			if p != parts[i].text {
				t.Fatalf("part %d is %q, want %q", i, p, parts[i].text)
			}
		}
		const others = "{}\"'\\*?[]"
		if i := bytes.IndexFunc(text, func(r rune) bool {
			return r <= ' ' || r > '~' || strings.ContainsRune(others, r)
		}); i >= 0 {
			t.Fatalf("%q has the byte %q", text, text[i])
		}
	})
}
