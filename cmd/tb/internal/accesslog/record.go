package accesslog

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Unknown is the Size of a response whose size was not logged.
const Unknown = -1

// Record is one request. A value that the log does not have (a "-", a missing or null JSON
// field) is empty. The slices point into the read buffer, and are valid until the next
// record is read.
type Record struct {
	// Time is the time of the line in nanoseconds since 1970 UTC, not negative: the start of
	// the request in Apache, its end in nginx and Caddy.
	Time int64
	// Peer is the peer of the connection as logged: an address, an address and a port, or
	// a host name. Where the log has an X-Forwarded-For list instead, it is the list.
	Peer []byte
	// Forwarded is the X-Forwarded-For list of the request, if Schema.Forwarded asks for it.
	Forwarded []byte
	// User is the user name as logged, which the server need not have checked.
	User []byte
	// Host is the requested host. Common and Combined have it only in a request to a
	// proxy, "GET http://host/path", and where the virtual host precedes the peer.
	Host []byte
	// Path is the requested path without the query. Its escapes stay as logged.
	Path []byte
	// Size is the number of bytes of the response, or Unknown.
	Size int64
	// Fields has the extra fields of the Schema, in order. In Common and Combined they are
	// all empty.
	Fields [][]byte
}

// reset empties the record, and makes room for n extra fields.
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

// The formats of logs. A log is Undetected before its first valid line.
const (
	Undetected Format = ""
	Common     Format = "common"
	Combined   Format = "combined"
	JSON       Format = "json"
)

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

const wantTime = "want epoch seconds or milliseconds, RFC 3339 with its zone," +
	" or 17/May/2015:10:05:03 +0000"

// The errors of a line. Each one says what was expected.
var (
	ErrTooLong = errors.New("line is longer than 1 MiB")
	errOrigin  = errors.New("want `client ident user [time] \"request\" status size`")
	errRequest = errors.New("want a quoted request after the time")
	errStatus  = errors.New("want a status of three digits, or -, after the request")
	errSize    = errors.New("want a size in bytes, or -, after the status")
	errTime    = errors.New("want a time like [17/May/2015:10:05:03 +0000], 1970 to 2261")
	errJSON    = errors.New("want one JSON object a line")
	errNoTime  = errors.New("no field with a time: " + wantTime)
	errBadTime = errors.New(wantTime)
)

// Schema names the fields of a JSON log that hold the parts of a Record. A path names a field
// in a nested object: "request.headers.X-Api-Key". The first element of an array counts, but
// an array of addresses is a list.
type Schema struct {
	// Names maps "time", "ip" (the peer), "forwarded", "user", "host", "uri" and "size" to
	// a field. The default fields are those of Caddy and nginx.
	Names map[string]string
	// Extra are the fields for Record.Fields.
	Extra []string
	// Forwarded asks for Record.Forwarded, in all formats.
	Forwarded bool
}

// The fields of a Record, in the order of defaultNames. The extra fields follow them.
const (
	fieldTime = iota
	fieldPeer
	fieldForwarded
	fieldUser
	fieldHost
	fieldURI
	fieldSize
	numFields
)

// defaultNames lists the candidates for each field: the first one present counts. The names
// of a peer come before Caddy's client_ip, which Caddy may have found in a header, and before
// the names of X-Forwarded-For, which serve a log without a peer. "request" is a whole
// request line in nginx and an object in Caddy.
var defaultNames = [numFields]struct {
	field string
	names []string
}{
	{"time", []string{"ts", "time", "timestamp", "@timestamp", "time_iso8601", "msec",
		"time_local"}},
	{"ip", []string{"request.remote_ip", "request.remote_addr", "remote_ip", "remote_addr",
		"request.client_ip", "client_ip", "ip", "http_x_forwarded_for", "x_forwarded_for"}},
	{"forwarded", []string{"request.headers.X-Forwarded-For", "http_x_forwarded_for",
		"x_forwarded_for"}},
	{"user", []string{"user_id", "remote_user", "user"}},
	{"host", []string{"request.host", "host", "http_host", "server_name"}},
	{"uri", []string{"request.uri", "request_uri", "uri", "request", "path"}},
	{"size", []string{"size", "body_bytes_sent", "bytes_sent", "bytes"}},
}

// Validate returns an error if Names has an unknown name or an empty field.
func (s Schema) Validate() error {
	var known []string
	for _, d := range defaultNames {
		known = append(known, d.field)
	}
	for field, name := range s.Names {
		if !slices.Contains(known, field) || name == "" {
			return fmt.Errorf("%s=%s: want NAME=FIELD with NAME one of %s",
				field, name, strings.Join(known, ", "))
		}
	}
	return nil
}

// candidates returns the candidate paths of each field, the best one first. The extra fields
// follow the fields of a Record.
func (s Schema) candidates() [][]string {
	var all [][]string
	for field, d := range defaultNames {
		if name, ok := s.Names[d.field]; ok {
			d.names = []string{name}
		}
		if field == fieldForwarded && !s.Forwarded {
			d.names = nil
		}
		all = append(all, d.names)
	}
	for _, name := range s.Extra {
		all = append(all, []string{name})
	}
	return all
}
