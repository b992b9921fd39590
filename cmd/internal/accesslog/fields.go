package accesslog

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"
)

// The fields of a Record, in the order of fieldNames. The extra fields follow them.
const (
	fieldDate = iota
	fieldTime
	fieldPeer
	fieldForwarded
	fieldUser
	fieldHost
	fieldMethod
	fieldURI
	fieldQuery
	fieldStatus
	fieldSize
	fieldAgent
	fieldLogger // of Caddy; it is not in fieldNames
	numFields
)

// fieldNames are the names of the fields in Schema.Names.
var fieldNames = [...]string{"date", "time", "ip", "forwarded", "user", "host", "method",
	"uri", "query", "status", "size", "agent"}

// candidates has the paths that may hold each field of a Record, the best one first.
type candidates [numFields][]string

// fields are the texts of a line in a format that names its fields. A slot holds the text of one
// path. A field has several candidate paths, and the first one found counts.
type fields struct {
	time   timeParser
	oldest int64            // the least time of a number, in nanoseconds since 1970
	slots  map[string][]int // by path; for the beginning of a path, none
	values [][]byte         // by slot
	first  []int            // the first slot of each field, and the end of the last
	named  []int            // fields of a request that the schema names, whatever their values are
}

// year2000 is its beginning. A number that is less is the time that something took, unless the
// schema names the field.
const year2000 = 946_684_800 * int64(time.Second)

// newFields returns the fields of a schema, with the usual candidates where it has no name. If only
// is not nil, other usual names are left out.
func newFields(s Schema, only []string) fields {
	f := fields{slots: make(map[string][]int), oldest: year2000}
	if _, ok := s.Names["time"]; ok {
		f.oldest = 0
	}
	n := 0
	add := func(paths ...string) {
		f.first = append(f.first, n)
		for _, path := range paths {
			for i := range path {
				if path[i] == '.' {
					f.slots[path[:i]] = append(f.slots[path[:i]], nil...)
				}
			}
			f.slots[path] = append(f.slots[path], n)
			n++
		}
	}
	for field, paths := range usual {
		if field < len(fieldNames) && s.Names[fieldNames[field]] != "" {
			paths = []string{s.Names[fieldNames[field]]}
			if field == fieldMethod || field == fieldURI || field == fieldStatus {
				f.named = append(f.named, field)
			}
		}
		if only != nil {
			paths = slices.DeleteFunc(slices.Clone(paths), func(path string) bool {
				return !slices.Contains(only, path)
			})
		}
		add(paths...)
	}
	for _, path := range s.Extra {
		add(path)
	}
	f.first = append(f.first, n)
	f.values = make([][]byte, n)
	return f
}

// set sets the text of some slots.
func (f *fields) set(slots []int, text []byte) {
	for _, slot := range slots {
		f.values[slot] = text
	}
}

// fill fills rec from the texts. Only the time is required. A size that is not a number is Unknown.
func (f *fields) fill(rec *Record) error {
	rec.Peer = f.text(fieldPeer)
	rec.Forwarded = f.text(fieldForwarded)
	rec.User = f.text(fieldUser)
	for _, text := range f.texts(fieldURI) {
		if t := splitTarget(emptyIfDash(text)); t.path != nil || t.host != nil {
			rec.setTarget(t)
			break
		}
	}
	if len(rec.Method) == 0 {
		rec.Method = f.text(fieldMethod)
	}
	if len(rec.Query) == 0 {
		rec.Query = f.text(fieldQuery)
	}
	if host := f.text(fieldHost); host != nil {
		rec.Host = host
	}
	if status := f.text(fieldStatus); isStatus(status) {
		rec.Status = status
	}
	if !rec.setSize(f.text(fieldSize)) {
		rec.Size = Unknown
	}
	rec.Agent = f.text(fieldAgent)
	for i := range rec.Fields {
		rec.Fields[i] = f.text(numFields + i)
	}
	return f.fillTime(rec)
}

// fillTime sets the time from the first candidate that is one.
func (f *fields) fillTime(rec *Record) (err error) {
	day := f.text(fieldDate)
	err = errNoTime
	for _, text := range f.texts(fieldTime) {
		if text = emptyIfDash(text); len(text) == 0 {
			continue
		}
		if day != nil && len(text) > 2 && text[2] == ':' {
			text = slices.Concat(day, space, text)
		}
		var ok bool
		if rec.Time, rec.NoZone, ok = f.time.any(text); ok && rec.Time >= f.oldest {
			return nil
		}
		if errors.Is(err, errNoTime) {
			err = fmt.Errorf("time %.60q: %w", text, errBadTime)
		}
	}
	return err
}

// fillRequest is fill for a format in which programs write all kinds of messages. A request has a
// method, a path or a status; a message may have an address or a host, too.
func (f *fields) fillRequest(rec *Record) error {
	err := f.fill(rec)
	isRequest := len(rec.Path) > 0 || isMethod(rec.Method) || len(rec.Status) > 0 ||
		slices.ContainsFunc(f.named, func(field int) bool { return f.text(field) != nil })
	if !isRequest && (err == nil || errors.Is(err, errNoTime)) {
		return ErrMessage
	}
	return err
}

// isMethod reports whether b is the name of a method, as in HTTP and WebDAV.
func isMethod(b []byte) bool {
	return len(b) > 0 && consistsOf(b, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-")
}

// texts returns the texts of the candidates for a field.
func (f *fields) texts(field int) [][]byte { return f.values[f.first[field]:f.first[field+1]] }

// text returns the text of the first candidate for a field that is not missing or empty.
func (f *fields) text(field int) []byte {
	for _, text := range f.texts(field) {
		if text = emptyIfDash(text); len(text) > 0 {
			return text
		}
	}
	return nil
}

// splitTarget splits a URI, or the URI of a whole request line. A word without a slash is what a
// server logs of something else than HTTP.
func splitTarget(b []byte) target {
	switch {
	case bytes.IndexByte(b, '/') < 0 && string(b) != "*":
		return target{}
	case b[0] != '/' && bytes.IndexByte(b, ' ') >= 0:
		return splitRequest(b)
	}
	return splitURI(b)
}

// ErrMessage is the error of a line that is not a request and not malformed: the message of a
// program, or a directive.
var ErrMessage error = &lack{5, "want a request, with a method, a path or a status"}

const wantTime = "want epoch seconds or milliseconds, RFC 3339," +
	" or 17/May/2015:10:05:03 +0000"

var (
	errNoTime  = &lack{6, "no field with a time: " + wantTime}
	errBadTime = &lack{7, wantTime}
)
