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
	fieldTime = iota
	fieldPeer
	fieldForwarded
	fieldUser
	fieldHost
	fieldURI
	fieldSize
	fieldAgent
	numFields
)

// fieldNames are the names of the fields in Schema.Names.
var fieldNames = [numFields]string{"time", "ip", "forwarded", "user", "host", "uri", "size",
	"agent"}

// candidates has the paths that may hold each field of a Record, the best one first.
type candidates [numFields][]string

// fields are the raw values of a line in a format that names its fields. A slot holds the value
// of one path. A field has several candidate paths, and the first one found counts.
type fields struct {
	time    timeParser
	ownTime bool                    // whether the schema names the field of the time
	paths   []string                // by slot
	values  [][]byte                // by slot
	first   []int                   // the first slot of each field, and the end of the last
	decode  func(raw []byte) []byte // returns the text of a raw value
}

// newFields returns the fields of a schema, with these candidates where it has no name.
func newFields(s Schema, usual candidates, decode func(raw []byte) []byte) fields {
	f := fields{decode: decode}
	_, f.ownTime = s.Names["time"]
	add := func(paths ...string) {
		f.first = append(f.first, len(f.paths))
		f.paths = append(f.paths, paths...)
	}
	for field, paths := range usual {
		if name, ok := s.Names[fieldNames[field]]; ok {
			paths = []string{name}
		}
		if field == fieldForwarded && !s.Forwarded {
			paths = nil
		}
		add(paths...)
	}
	for _, path := range s.Extra {
		add(path)
	}
	f.first = append(f.first, len(f.paths))
	f.values = make([][]byte, len(f.paths))
	return f
}

// slots returns which slots hold the value of a path.
func (f *fields) slots(path string) (slots []int) {
	for slot, p := range f.paths {
		if p == path {
			slots = append(slots, slot)
		}
	}
	return slots
}

// set sets the value of some slots.
func (f *fields) set(slots []int, raw []byte) {
	for _, slot := range slots {
		f.values[slot] = raw
	}
}

// fill fills rec from the values. Only the time is required.
func (f *fields) fill(rec *Record) error {
	f.fillRest(rec)
	var bad []byte
	for _, raw := range f.values[f.first[fieldTime]:f.first[fieldTime+1]] {
		if len(raw) == 0 {
			continue
		}
		text := emptyIfDash(f.decode(raw))
		if len(text) == 0 {
			continue
		}
		if ns, ok := f.time.any(text); ok && (f.ownTime || ns >= leastEpoch || !isNumber(text)) {
			rec.Time = ns
			return nil
		}
		if bad == nil {
			bad = text
		}
	}
	if bad == nil {
		return errNoTime
	}
	return badTime(bad)
}

// leastEpoch is the beginning of the year 2000. A number that is less is the time that something
// took, unless the schema names the field.
const leastEpoch = 946_684_800 * int64(time.Second)

// isNumber reports whether a time is a number since 1970.
func isNumber(text []byte) bool {
	digits := countDigits(text)
	return digits == len(text) || bytes.IndexByte([]byte(".eE"), text[digits]) >= 0
}

// fillRequest is fill for a format in which programs write all kinds of messages. It requires a
// part of a request: a log without addresses can still be limited by user.
func (f *fields) fillRequest(rec *Record) error {
	err := f.fill(rec)
	if (err == nil || errors.Is(err, errNoTime)) && !rec.hasPart() {
		return errNoPart
	}
	return err
}

// hasPart reports whether the record has anything that a key may consist of.
func (rec *Record) hasPart() bool {
	return len(rec.Peer)+len(rec.Forwarded)+len(rec.User)+len(rec.Host)+len(rec.Path) > 0 ||
		slices.ContainsFunc(rec.Fields, func(b []byte) bool { return len(b) > 0 })
}

// fillRest fills all but the time. A size that is not a number is Unknown.
func (f *fields) fillRest(rec *Record) {
	rec.Peer = f.text(fieldPeer)
	rec.Forwarded = f.text(fieldForwarded)
	rec.User = f.text(fieldUser)
	rec.setTarget(splitTarget(f.text(fieldURI)))
	if host := f.text(fieldHost); host != nil {
		rec.Host = host
	}
	if !rec.setSize(f.text(fieldSize)) {
		rec.Size = Unknown
	}
	rec.agent = f.text(fieldAgent)
	for i := range rec.Fields {
		rec.Fields[i] = f.text(numFields + i)
	}
}

// text returns the text of the first candidate for a field that is not missing or empty.
func (f *fields) text(field int) []byte {
	for _, raw := range f.values[f.first[field]:f.first[field+1]] {
		if len(raw) == 0 {
			continue // nearly always, and faster than decode
		}
		if text := emptyIfDash(f.decode(raw)); len(text) > 0 {
			return text
		}
	}
	return nil
}

// plain is the decode function of values that are logged as they are.
func plain(raw []byte) []byte { return raw }

// splitTarget splits a URI, or the URI of a whole request line.
func splitTarget(b []byte) target {
	if len(b) > 0 && b[0] != '/' && bytes.IndexByte(b, ' ') >= 0 {
		return splitRequest(b)
	}
	return splitURI(b)
}

const wantTime = "want epoch seconds or milliseconds, RFC 3339 with its zone," +
	" or 17/May/2015:10:05:03 +0000"

var (
	errNoPart  = &lack{1, "no field of a request: want ip, user, host, uri or a field of the key"}
	errNoTime  = &lack{2, "no field with a time: " + wantTime}
	errBadTime = &lack{3, wantTime}
)

// badTime returns an error that quotes a time.
func badTime(text []byte) error {
	return fmt.Errorf("time %q: %w", text[:min(len(text), excerpt)], errBadTime)
}
