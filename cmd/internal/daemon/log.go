// Package daemon has what the servers of tb have in common: a log that a flood of requests does
// not block, files that are read again when they change, and an HTTP server that can be stopped.
package daemon

import (
	"bytes"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"github.com/seed-181794aa/ratelimit/cmd/internal/printable"
)

// NewLog returns a log that writes to w in the background, and its writer.
func NewLog(w io.Writer, format string) (*slog.Logger, *Writer) {
	var log *slog.Logger
	lines := NewWriter(printable.NewWriter(w), func(dropped uint64) {
		log.Warn("the log was full", "dropped", dropped)
	})
	var handler slog.Handler = slog.NewTextHandler(lines, nil)
	if format == "json" {
		handler = slog.NewJSONHandler(lines, nil)
	}
	log = slog.New(handler)
	return log, lines
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

// logPanics logs the panics of a handler on one line each. net/http would write a stack trace.
func logPanics(h http.Handler, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			switch v := recover(); v {
			case nil:
			case http.ErrAbortHandler:
				panic(v)
			default:
				log.Error("panic", "method", r.Method, "path", r.URL.Path, "panic", fmt.Sprint(v),
					"in", panicking())
				panic(http.ErrAbortHandler) // closes the connection without a trace
			}
		}()
		h.ServeHTTP(w, r)
	})
}

// panicking returns the function and the line that panicked. It must be called by a deferred
// function.
func panicking() string {
	var callers [16]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers[:])])
	for {
		frame, more := frames.Next()
		if !strings.HasPrefix(frame.Function, "runtime.") {
			return fmt.Sprintf("%s:%d", frame.Function, frame.Line)
		}
		if !more {
			return ""
		}
	}
}

// CatchHangups returns the channel of SIGHUP, which then never kills the process. A write to a
// closed pipe, as after the end of the process that reads the log, does not kill it either.
func CatchHangups() <-chan os.Signal {
	signal.Ignore(syscall.SIGPIPE)
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	return hangups
}
