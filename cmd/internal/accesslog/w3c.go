package accesslog

import (
	"bytes"
	"errors"
	"strings"
)

// w3cParser parses the W3C Extended Log File Format (https://www.w3.org/TR/WD-logfile.html), as
// IIS and Amazon CloudFront write it:
//
//	#Fields: date time c-ip cs-method cs-uri-stem sc-bytes
//	2015-05-17 10:05:03 192.0.2.7 GET /a 17
//
// The last #Fields directive names the columns, and may come again with other ones. IIS has spaces
// between the columns and CloudFront has tabs. In a column, IIS writes + and CloudFront %20 for a
// space. IIS Advanced Logging and Imperva write columns in quotes, and others pad them with spaces.
// Times are UTC. Columns with the local time only, as Advanced Logging may have, count as UTC. Zeek
// writes the same with other directives, and the time as ts, in seconds since 1970:
//
//	#separator \x09
//	#fields	ts	id.orig_h	uri
//
// The columns of the servers:
//
//   - learn.microsoft.com/en-us/windows/win32/http/w3c-logging
//   - docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/standard-logs-reference.html
//   - docs.zeek.org/en/master/logs/http.html
//   - docs-cybersec.thalesgroup.com/bundle/cloud-application-security/page/more/example-logs.htm
type w3cParser struct {
	fields
	named   bool    // whether there was a #Fields directive
	epoch   bool    // whether the columns have the time since 1970 and no date
	columns [][]int // the slots of each column; nil without a usable directive
	date    int     // the column of the date, or -1
	day     []byte  // the date of the line
}

// w3cCandidates has the names in lower case. CloudFront's cs(Host) is the name of the
// distribution, and its x-host-header is the requested host. IIS writes X-Forwarded-For under the
// name that its operator chose.
var w3cCandidates = candidates{
	fieldTime:      {"time", "time-local", "ts"},
	fieldPeer:      {"c-ip", "id.orig_h"},
	fieldForwarded: {"x-forwarded-for", "cs(x-forwarded-for)", "s-xff"},
	fieldUser:      {"cs-username"},
	fieldHost:      {"x-host-header", "cs-host", "cs(host)", "host"},
	fieldURI:       {"cs-uri-stem", "cs-uri", "uri"},
	fieldSize:      {"sc-bytes", "response_body_len"},
	fieldAgent:     {"cs(user-agent)", "user_agent"},
}

var (
	errNotW3C   = &lack{0, "want a date and a time at the start, or a directive"}
	errNoFields = &lack{1, "want a #Fields directive before the line"}
	errFields   = &lack{2, "want date and time among the columns of #Fields, at most 1000"}
	errColumns  = &lack{2, "want as many columns as the #Fields directive has"}
	errDateTime = &lack{3, "want a date and a time like 2015-05-17 10:05:03"}

	// errDirective reports a line that is not a request and is not malformed.
	errDirective = errors.New("directive")
)

// newW3CParser returns a parser for the columns of a schema.
func newW3CParser(s Schema) *w3cParser {
	p := &w3cParser{fields: newFields(s, w3cCandidates, plain)}
	for i, path := range p.paths {
		p.paths[i] = strings.ToLower(path)
	}
	return p
}

// parse returns errDirective for a directive.
func (p *w3cParser) parse(line []byte, rec *Record) (Format, error) {
	if isDirective(line) {
		name := line[:min(len(line), len("#Fields:"))]
		if string(name) == "#Fields:" || string(name) == "#fields\t" {
			p.setColumns(string(line[len(name):]))
		}
		return Undetected, errDirective
	}
	if p.columns == nil {
		return Undetected, p.errorWithoutColumns(line)
	}
	clear(p.values)
	if !p.split(line) && !p.splitQuoted(line) {
		return Undetected, errColumns
	}
	var err error
	if p.ownTime || p.epoch {
		err = p.fill(rec)
	} else {
		var ok bool
		if rec.Time, ok = p.time.dateAndTime(p.day, p.text(fieldTime)); !ok {
			return Undetected, errDateTime
		}
		p.fillRest(rec)
	}
	rec.Peer, rec.Forwarded = withoutSpaces(rec.Peer), withoutSpaces(rec.Forwarded)
	return W3C, err
}

// withoutSpaces returns a list of addresses without the spaces after its commas. It allocates only
// for a list of several. A %20 elsewhere may be the zone of an address, which IIS writes as it is.
func withoutSpaces(list []byte) []byte {
	if bytes.IndexByte(list, ',') < 0 {
		return list
	}
	list = bytes.ReplaceAll(list, []byte(",+"), []byte(","))
	return bytes.ReplaceAll(list, []byte(",%20"), []byte(","))
}

// errorWithoutColumns returns the error of a line after no usable directive.
func (p *w3cParser) errorWithoutColumns(line []byte) error {
	if p.named {
		return errFields
	}
	if n := len("2015-05-17 10:05:03"); len(line) >= n {
		if _, ok := p.time.dateAndTime(line[:10], line[11:n]); ok {
			return errNoFields
		}
	}
	return errNotW3C
}

// isDirective reports whether a line is "#Name: …" or, in Zeek, "#name" with a tab or a space and
// \x.
func isDirective(line []byte) bool {
	end := bytes.IndexAny(line, ": \t\"")
	return end > 1 && line[0] == '#' &&
		(line[end] == ':' || line[end] == '\t' || bytes.HasPrefix(line[end:], []byte(` \x`)))
}

// maxColumns is the most columns that a directive can name. It bounds the memory for them.
const maxColumns = 1000

// setColumns sets the columns that a directive names. If it has no date and time, or too many
// columns, the lines after it are malformed.
func (p *w3cParser) setColumns(names string) {
	p.named, p.columns, p.date, p.epoch = true, nil, -1, false
	clear(p.values)
	for name := range strings.FieldsSeq(strings.ToLower(names)) {
		if name == "date" || name == "date-local" && p.date < 0 {
			p.date = len(p.columns)
		}
		p.epoch = p.epoch || name == "ts"
		slots := p.slots(name)
		p.set(slots, []byte(name))
		p.columns = append(p.columns, slots)
		if len(p.columns) > maxColumns {
			break
		}
	}
	p.epoch = p.epoch && p.date < 0
	hasTime := p.text(fieldTime) != nil && (p.date >= 0 || p.ownTime || p.epoch)
	if !hasTime || len(p.columns) > maxColumns {
		p.columns = nil
	}
}

// split sets the values of the columns, and reports whether there are as many as there should be.
func (p *w3cParser) split(line []byte) bool {
	line = bytes.TrimRight(line, " \t")
	separator := separatorOf(line)
	for column := range p.columns {
		value, isLast := line, column == len(p.columns)-1
		end := bytes.IndexByte(line, separator)
		if end < 0 != isLast {
			return false
		}
		if !isLast {
			value, line = line[:end], line[end+1:]
		}
		p.setColumn(column, value)
	}
	return true
}

// separatorOf returns the first space or tab, a space if there is none. A client can send a tab,
// but not in the date.
func separatorOf(line []byte) byte {
	if i := bytes.IndexAny(line, " \t"); i >= 0 {
		return line[i]
	}
	return ' '
}

// splitQuoted is split for columns in quotes, or with several separators between them.
func (p *w3cParser) splitQuoted(line []byte) bool {
	clear(p.values)
	separator := separatorOf(line)
	rest := line
	for column := range p.columns {
		for len(rest) > 0 && rest[0] == separator {
			rest = rest[1:]
		}
		if len(rest) == 0 {
			return false
		}
		end := quotedEnd(rest, separator)
		if end < 0 {
			end = bytes.IndexByte(rest, separator)
		}
		if end < 0 {
			end = len(rest)
		}
		p.setColumn(column, bytes.Trim(rest[:end], `"`))
		rest = rest[end:]
	}
	return isBlank(rest)
}

// quotedEnd returns the length of the column in quotes that b begins with, up to a quote before a
// separator or the end, or -1.
func quotedEnd(b []byte, separator byte) int {
	for i := 1; b[0] == '"' && i < len(b); i++ {
		if b[i] == '"' && (i+1 == len(b) || b[i+1] == separator) {
			return i + 1
		}
	}
	return -1
}

func (p *w3cParser) setColumn(column int, value []byte) {
	if column == p.date {
		p.day = value
	}
	p.set(p.columns[column], value)
}
