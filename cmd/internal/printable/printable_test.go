package printable

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n": "plain\ttext\n", "é 漢 😀": "é 漢 😀",
		"\x1b[2J":          `\u001b[2J`,
		"\u009b2J\u0085":   `\u009b2J\u0085`,
		"\x7f\r\x00":       `\u007f\u000d\u0000`,
		"a\u202eb\u2066c":  `a\u202eb\u2066c`,
		"\u200b\ufeff":     `\u200b\ufeff`,
		"\U000e0041":       `\udb40\udc41`,
		"\x9b1m":           `\x9b1m`,
		"\ufffd":           "\ufffd",
		"\u2028 \u061c":    `\u2028 \u061c`,
		`"\u202e" stays \`: `"\u202e" stays \`,
	} {
		var b strings.Builder
		n, err := NewWriter(&b).Write([]byte(in))
		if b.String() != want || n != len(in) || err != nil {
			t.Errorf("%q: got %q, %d, %v, want %q", in, &b, n, err, want)
		}
	}
}

// A JSON text means the same afterwards.
func TestJSONMeansTheSame(t *testing.T) {
	const want = "\x00\x1b\x7f\u0080\u009f\u061c\u200e\u202a\u202e\u2066\u2069" +
		"\ufeff\U000e0041é😀\t\n\\\""
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	NewWriter(&b).Write(text)
	var got string
	if err := json.Unmarshal([]byte(b.String()), &got); err != nil || got != want {
		t.Errorf("%s: %q, %v", &b, got, err)
	}
	if strings.ContainsAny(b.String(), "\x7f\u0080\u009f\u202e\ufeff\U000e0041") {
		t.Error(b.String())
	}
}
