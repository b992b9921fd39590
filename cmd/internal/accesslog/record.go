package accesslog

import (
	"errors"
	"fmt"
)

// Record is one request. A value that the log does not have (a "-", a missing or null JSON
// field) is empty. The slices are valid until the next record is read.
type Record struct {
	// Time is the time of the line in nanoseconds since 1970 UTC, not negative: the start of
	// the request in Apache, HAProxy, Envoy, Traefik and S3, its end in nginx, Caddy and ALB.
	Time int64
	// NoZone reports that the time was logged without a zone, and read as UTC.
	NoZone bool
	// Peer is the peer of the connection as logged: an address, an address and a port, or
	// a host name. Where the log has an X-Forwarded-For list instead, it is the list.
	Peer []byte
	// User is the user name as logged, which the server need not have checked.
	User []byte
	// Host is the requested host. Common, Combined and HAProxy have it only in a request to a
	// proxy, "GET http://host/path", and where the virtual host precedes the peer.
	Host []byte
	// Method is the method of the request.
	Method []byte
	// Path is the requested path, and Query is what follows its "?". Their escapes stay as logged.
	Path, Query []byte
	// Status is the status of the response, three digits.
	Status []byte
	// Agent is the User-Agent of the request, in Combined, ALB, Envoy, and the formats that name their
	// fields. A client can send any.
	Agent []byte
	// Forwarded is the X-Forwarded-For list of the request.
	Forwarded []byte
	// Fields has the extra fields of the Schema, in order. They are empty in a format that
	// does not name its fields.
	Fields [][]byte

	combined bool // whether fields in quotes follow the size
}

// reset empties the record, and makes room for n extra fields.
func (rec *Record) reset(n int) {
	*rec = Record{Fields: append(rec.Fields[:0], make([][]byte, n)...)} // allocates once
}

// Format is the format of a log.
type Format string

// The formats of logs, besides the ones of patterns. A log is Undetected before its first valid
// line.
const (
	Undetected Format = ""
	Common     Format = "common"
	Combined   Format = "combined"
	JSON       Format = "json"
	Logfmt     Format = "logfmt"
	W3C        Format = "w3c"
	LogFormat  Format = "log_format" // Schema.LogFormat
)

// NamesFields reports whether lines of the format name their fields, so that any part of a request
// may be missing. Other formats have a request line.
func (f Format) NamesFields() bool {
	return f == JSON || f == Logfmt || f == W3C || f == LogFormat
}

// LineError reports a line that is not a request. Reading can go on after it.
type LineError struct {
	File string // the name of the log
	Line int64  // its number, from 1, empty lines counted
	Err  error  // what was expected
	Text string // the first bytes of the line, at most 60
}

// Error returns the place of the line, what was expected, and its first bytes.
func (e *LineError) Error() string {
	return fmt.Sprintf("%s:%d: %v: %q", e.File, e.Line, e.Err, e.Text)
}

// Unwrap returns Err.
func (e *LineError) Unwrap() error { return e.Err }

// ErrTooLong is the error of a line that is longer than MaxLine.
var ErrTooLong = errors.New("line is longer than 128 KiB")

// lack is the error of a line that is not a request in some format.
type lack struct {
	parts int    // how many parts of a request were read before the first that is not there
	want  string // what was expected
}

func (l *lack) Error() string { return l.want }
