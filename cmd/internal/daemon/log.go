// Package daemon has what the servers of tb have in common: a log that a flood of requests does
// not block, files that are read again when they change, and an HTTP server that can be stopped.
package daemon

import (
	"bytes"
	"io"
	stdlog "log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/seed-181794aa/ratelimit/cmd/internal/printable"
)

// NewLog returns a log that writes to w in the background, and its writer.
func NewLog(w io.Writer, format string) (*slog.Logger, *Writer) {
	lines := NewWriter(printable.NewWriter(w))
	var handler slog.Handler = slog.NewTextHandler(lines, nil)
	if format == "json" {
		handler = slog.NewJSONHandler(lines, nil)
	}
	return slog.New(handler), lines
}

// firstLine logs the first line of each text. net/http writes stack traces after it.
type firstLine struct{ log *slog.Logger }

func (f firstLine) Write(text []byte) (int, error) {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	f.log.Warn(string(line))
	return len(text), nil
}

// NewErrorLog returns the ErrorLog of servers and of the reverse proxy. Clients and upstreams
// decide how much net/http writes to it, so log must be throttled.
func NewErrorLog(log *slog.Logger) *stdlog.Logger { return stdlog.New(firstLine{log}, "", 0) }

// RedirectStandardLog sends the standard log of the process to a throttled log. net/http's
// Transport has no other log.
func RedirectStandardLog(log *slog.Logger) {
	stdlog.SetOutput(firstLine{log})
	stdlog.SetFlags(0)
}

// CatchHangups returns the channel of SIGHUP, which then never kills the process. A write to a
// closed pipe, as after the end of the process that reads the log, does not kill it either.
func CatchHangups() <-chan os.Signal {
	signal.Ignore(syscall.SIGPIPE)
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	return hangups
}
