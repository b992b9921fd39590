package testkit

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// Transcript is a log without times. A test can wait for a line of it.
type Transcript struct {
	Lines chan string
	part  []byte
}

// NewTranscript returns an empty transcript.
func NewTranscript() *Transcript { return &Transcript{Lines: make(chan string, 1000)} }

// Write implements io.Writer.
func (l *Transcript) Write(b []byte) (int, error) {
	l.part = append(l.part, b...)
	for {
		line, rest, ok := bytes.Cut(l.part, []byte("\n"))
		if !ok {
			return len(b), nil
		}
		l.Lines <- string(line)
		l.part = rest
	}
}

// Logger returns a logger that writes to the transcript.
func (l *Transcript) Logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == "duration" {
				return slog.Attr{}
			}
			return a
		},
	}))
}

// Until waits for a line that contains text. It returns that line and the lines before it.
func (l *Transcript) Until(t testing.TB, text string) string {
	t.Helper()
	var all []string
	for {
		select {
		case line := <-l.Lines:
			all = append(all, line)
			if strings.Contains(line, text) {
				return strings.Join(all, "\n")
			}
		case <-t.Context().Done():
			t.Fatalf("no line with %q in:\n%s", text, strings.Join(all, "\n"))
		}
	}
}
