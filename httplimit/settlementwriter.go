package httplimit

import (
	"bufio"
	"io"
	"maps"
	"net"
	"net/http"
)

// meter is the ResponseWriter of a Settlement.
type meter struct {
	http.ResponseWriter
	s *Settlement
}

// newMeter returns a meter with the optional methods of w. It has ReadFrom only with the other
// methods of HTTP/1, because io.Copy does not need it. With Hijack it always has Flush.
func newMeter(s *Settlement, w http.ResponseWriter) http.ResponseWriter {
	m := &meter{w, s}
	_, canRead := w.(io.ReaderFrom)
	canFlush := supports[http.Flusher](w) || supports[interface{ FlushError() error }](w)
	canHijack := supports[http.Hijacker](w)
	f := flusher{m}
	switch {
	case canHijack && canFlush && canRead: // HTTP/1
		return readerFrom{hijacker{f}}
	case canHijack:
		return hijacker{f}
	case canFlush:
		return f
	}
	return m
}

// supports reports whether w, or a writer that it unwraps to, is a T.
func supports[T any](w http.ResponseWriter) bool {
	for {
		if _, ok := w.(T); ok {
			return true
		}
		inner, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return false
		}
		w = inner.Unwrap()
	}
}

// Unwrap lets http.ResponseController set deadlines.
func (m *meter) Unwrap() http.ResponseWriter { return m.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (m *meter) WriteHeader(status int) {
	if status < http.StatusContinue || status >= http.StatusOK ||
		status == http.StatusSwitchingProtocols {
		m.s.observe(status, m.Header())
		m.s.ReadHeader(m.Header())
		m.ResponseWriter.WriteHeader(status)
		return
	}
	// The fields of an informational response are not about the cost of the final one.
	hidden := http.Header{}
	for _, p := range m.s.parts {
		field := p.price.field
		if values, isSet := m.Header()[field]; isSet && p.price.hidden {
			hidden[field] = values
			delete(m.Header(), field)
		}
	}
	m.ResponseWriter.WriteHeader(status)
	maps.Copy(m.Header(), hidden)
}

// Write implements http.ResponseWriter.
func (m *meter) Write(b []byte) (int, error) {
	m.s.ReadHeader(m.Header())
	n, err := m.ResponseWriter.Write(b)
	m.s.bytes += int64(n)
	if m.s.usage != nil {
		_, _ = m.s.usage.Write(b[:n])
	}
	return n, err
}

// WriteString implements io.StringWriter.
func (m *meter) WriteString(text string) (int, error) {
	m.s.ReadHeader(m.Header())
	if m.s.usage != nil {
		return m.Write([]byte(text))
	}
	n, err := io.WriteString(m.ResponseWriter, text)
	m.s.bytes += int64(n)
	return n, err
}

type flusher struct{ *meter }

// Flush implements http.Flusher.
func (f flusher) Flush() { _ = f.FlushError() }

// FlushError is what http.ResponseController calls.
func (f flusher) FlushError() error {
	f.s.ReadHeader(f.Header())
	return http.NewResponseController(f.ResponseWriter).Flush()
}

type hijacker struct{ flusher }

// Hijack implements http.Hijacker.
func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffer, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err == nil {
		h.s.hijacked = true
		h.s.observe(http.StatusSwitchingProtocols, nil)
	}
	return conn, buffer, err
}

type readerFrom struct{ hijacker }

// ReadFrom implements io.ReaderFrom.
func (r readerFrom) ReadFrom(src io.Reader) (int64, error) {
	r.s.ReadHeader(r.Header())
	if usage := r.s.usage; usage != nil {
		src = io.TeeReader(src, ignoringErrors{usage})
	}
	n, err := r.ResponseWriter.(io.ReaderFrom).ReadFrom(src)
	r.s.bytes += n
	return n, err
}

// ignoringErrors is a writer that a response does not depend on.
type ignoringErrors struct{ io.Writer }

func (w ignoringErrors) Write(b []byte) (int, error) {
	_, _ = w.Writer.Write(b)
	return len(b), nil
}
