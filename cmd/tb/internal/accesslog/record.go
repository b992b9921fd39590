package accesslog

import (
	"errors"
	"fmt"
)

// Unknown is the Size of a response whose size was not logged.
const Unknown = -1

// Record is one request. What the log left out (a "-", a missing or null JSON field)
// is empty. The slices point into the read buffer: they are valid until the next
// record is read.
type Record struct {
	// Time is when the request was received, in nanoseconds since 1970 UTC, not negative.
	Time int64
	// IP is the client as logged: an address, an address and a port, or a host name.
	IP []byte
	// User is the authenticated user.
	User []byte
	// Host is the host asked for. In Common and Combined it is there only for requests
	// to a proxy, "GET http://host/path", and where the name of the virtual host precedes
	// the client.
	Host []byte
	// Path is the path asked for, without query. Its escapes are left as logged.
	Path []byte
	// Size is the number of bytes of the response, or Unknown.
	Size int64
	// Fields has the extra fields of the Schema, in its order. In Common and Combined
	// they are all empty.
	Fields [][]byte
}

// reset empties the record, keeping the room for n extra fields.
func (rec *Record) reset(n int) {
	fields := rec.Fields
	if cap(fields) < n {
		fields = make([][]byte, n)
	}
	fields = fields[:n]
	clear(fields)
	*rec = Record{Size: Unknown, Fields: fields}
}

// Format is the format of a log.
type Format string

// The formats. Undetected is that of a log before its first valid line.
const (
	Undetected Format = ""
	Common     Format = "common"
	Combined   Format = "combined"
	JSON       Format = "json"
)

// LineError is a line that is no request. Reading can go on after it.
type LineError struct {
	File string // the name of the log
	Line int64  // its number, from 1, empty lines counted
	Err  error  // what is wrong with it
	Text string // how it begins, at most 60 bytes
}

// Error says where the line is, what was expected, and what it begins with.
func (e *LineError) Error() string {
	return fmt.Sprintf("%s:%d: %v: %q", e.File, e.Line, e.Err, e.Text)
}

// Unwrap returns what is wrong with the line.
func (e *LineError) Unwrap() error { return e.Err }

const wantTime = "want epoch seconds or milliseconds, RFC 3339 with its zone," +
	" or 17/May/2015:10:05:03 +0000"

// What can be wrong with a line. Each says what was expected.
var (
	ErrTooLong = errors.New("line is longer than 1 MiB")
	errClient  = errors.New("want `client ident user [time] \"request\" status size`")
	errRequest = errors.New("want a quoted request after the time")
	errStatus  = errors.New("want a status of three digits, or -, after the request")
	errSize    = errors.New("want a size in bytes, or -, after the status")
	errTime    = errors.New("want a time like [17/May/2015:10:05:03 +0000], 1970 to 2261")
	errJSON    = errors.New("want one JSON object a line")
	errNoTime  = errors.New("no field with a time: " + wantTime)
	errBadTime = errors.New(wantTime)
)
