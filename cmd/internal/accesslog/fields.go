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
	fieldURI
	fieldSize
	fieldAgent
	numFields
)

// fieldNames are the names of the fields in Schema.Names.
var fieldNames = [numFields]string{"date", "time", "ip", "forwarded", "user", "host", "uri", "size",
	"agent"}

// candidates has the paths that may hold each field of a Record, the best one first.
type candidates [numFields][]string

// fields are the texts of a line in a format that names its fields. A slot holds the text of one
// path. A field has several candidate paths, and the first one found counts.
type fields struct {
	time    timeParser
	ownTime bool     // whether the schema names the field of the time
	paths   []string // by slot
	values  [][]byte // by slot
	first   []int    // the first slot of each field, and the end of the last
}

// newFields returns the fields of a schema, with these candidates where it has no name.
func newFields(s Schema, usual candidates) (f fields) {
	_, f.ownTime = s.Names["time"]
	add := func(paths ...string) {
		f.first = append(f.first, len(f.paths))
		f.paths = append(f.paths, paths...)
	}
	for field, paths := range usual {
		if name, ok := s.Names[fieldNames[field]]; ok {
			paths = []string{name}
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

// slots returns which slots hold the text of a path.
func (f *fields) slots(path string) (slots []int) {
	for slot, p := range f.paths {
		if p == path {
			slots = append(slots, slot)
		}
	}
	return slots
}

// set sets the text of some slots.
func (f *fields) set(slots []int, text []byte) {
	for _, slot := range slots {
		f.values[slot] = text
	}
}

// fill fills rec from the texts. Only the time is required.
func (f *fields) fill(rec *Record) error {
	f.fillRest(rec)
	day := f.text(fieldDate)
	var bad []byte
	for _, text := range f.values[f.first[fieldTime]:f.first[fieldTime+1]] {
		if text = emptyIfDash(text); len(text) == 0 {
			continue
		}
		ns, ok := f.timeOf(day, text)
		if ok {
			rec.Time = ns
			return nil
		}
		if bad == nil {
			bad = text
		}
	}
	switch {
	case bad == nil:
		return errNoTime
	case day != nil:
		return fmt.Errorf("time %.60q on %.60q: %w", bad, day, errBadTime)
	}
	return fmt.Errorf("time %.60q: %w", bad, errBadTime)
}

// timeOf parses a time, perhaps with its date in another field.
func (f *fields) timeOf(day, text []byte) (ns int64, ok bool) {
	if day != nil {
		return dateAndTime(day, text)
	}
	ns, ok = f.time.any(text)
	return ns, ok && (f.ownTime || ns >= leastEpoch || !isNumber(text))
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
	for _, text := range f.values[f.first[field]:f.first[field+1]] {
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
	case len(b) == 0 || b[0] == '/':
		return splitURI(b)
	case bytes.IndexByte(b, ' ') >= 0:
		return splitDashed(b)
	case bytes.IndexByte(b, '/') >= 0 || string(b) == "*":
		return splitURI(b)
	}
	return target{}
}

const wantTime = "want epoch seconds or milliseconds, RFC 3339 with its zone," +
	" or 17/May/2015:10:05:03 +0000"

var (
	errNoPart  = &lack{5, "no field of a request: want ip, user, host, uri or a field of the key"}
	errNoTime  = &lack{6, "no field with a time: " + wantTime}
	errBadTime = &lack{7, wantTime}
)
