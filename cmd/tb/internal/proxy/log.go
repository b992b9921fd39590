package proxy

import (
	"bytes"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"net/http"
	"runtime"
	"strings"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/printable"
)

// newLog returns a log that writes to w in the background, and its writer.
func newLog(w io.Writer, format string) (*slog.Logger, *backgroundWriter) {
	var log *slog.Logger
	lines := newBackgroundWriter(printable.NewWriter(w), func(dropped uint64) {
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

// newErrorLog returns the ErrorLog of servers and of the reverse proxy. Clients and upstreams
// decide how much net/http writes to it, so log must be throttled.
func newErrorLog(log *slog.Logger) *stdlog.Logger { return stdlog.New(firstLine{log}, "", 0) }

// redirectStandardLog sends the standard log of the process to a throttled log. net/http's
// Transport has no other log.
func redirectStandardLog(log *slog.Logger) {
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
