package accesslog

import "bytes"

// w3cParser parses the Extended Log File Format of the W3C (https://www.w3.org/TR/WD-logfile),
// which IIS and Amazon CloudFront write, and the similar one of Zeek. A directive says which fields
// follow. Values have spaces between them, or tabs:
//
//	#Date: 2024-01-02 15:04:05
//	#Fields: time c-ip cs-method cs-uri-stem sc-status
//	15:04:06 192.0.2.7 GET /a 200
//
// A line without a date has the one of the last #Date. Times are in UTC.
type w3cParser struct {
	fields
	columns [][]int // the slots of each field
	date    []byte
}

var (
	errNoFields = &lack{0, "want a line that begins with #Fields before the first request"}
	errColumns  = &lack{4, "want a value for each name in #Fields"}
)

func (p *w3cParser) parse(line []byte, rec *Record) error {
	if bytes.HasPrefix(line, []byte("#")) {
		p.direct(line)
		return ErrMessage
	}
	if p.columns == nil {
		return errNoFields
	}
	separator := space
	if tab := []byte{'\t'}; bytes.Contains(line, tab) {
		separator = tab
	}
	clear(p.values)
	p.set(p.slots["date"], p.date)
	for i, slots := range p.columns {
		value, rest, more := bytes.Cut(line, separator)
		if more != (i < len(p.columns)-1) {
			return errColumns
		}
		p.set(slots, value)
		line = rest
	}
	err := p.fillRequest(rec)
	rec.NoZone = false
	return err
}

func (p *w3cParser) direct(line []byte) {
	words := bytes.Fields(line)
	switch name := string(words[0]); {
	case name == "#Date:" && len(words) > 1:
		p.date = bytes.Clone(words[1])
	case name == "#Fields:" || name == "#fields":
		p.columns = nil
		for _, word := range words[1:] {
			p.columns = append(p.columns, p.slots[string(word)])
		}
	}
}
