// Package printable escapes text that a terminal or a viewer would not show as it is: control
// characters, controls of the writing direction, invisible characters and invalid UTF-8.
package printable

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// NewWriter returns a writer that escapes what it writes to w, except ends of lines and tabs. It
// escapes as JSON does, so a JSON text means the same afterwards. A Write must not end within a
// character.
func NewWriter(w io.Writer) io.Writer { return Writer{w} }

// Writer escapes what it writes to the writer in it.
type Writer struct{ io.Writer }

func (w Writer) Write(b []byte) (int, error) {
	if !isClean(b) {
		if _, err := io.WriteString(w.Writer, Escape(string(b))); err != nil {
			return 0, err
		}
		return len(b), nil
	}
	return w.Writer.Write(b)
}

// isClean reports whether b is printable ASCII with ends of lines and tabs.
func isClean(b []byte) bool {
	for _, c := range b {
		if c >= 0x7f || c < ' ' && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// Escape returns s with escapes for all characters that are not printable, except ends of lines
// and tabs.
func Escape(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, s[i]) // not UTF-8
		case r == '\n' || r == '\t' || unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
