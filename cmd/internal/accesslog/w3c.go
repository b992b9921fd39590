package accesslog

import (
	"bytes"
	"errors"
	"maps"
	"strings"
	"time"
)

// w3cParser parses the W3C Extended Log File Format (https://www.w3.org/TR/WD-logfile.html), as IIS
// (learn.microsoft.com/en-us/windows/win32/http/w3c-logging) and Amazon CloudFront
// (docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/standard-logs-reference.html) write
// it:
//
//	#Fields: date time c-ip cs-method cs-uri-stem sc-bytes
//	2015-05-17 10:05:03 192.0.2.7 GET /a 17
//
// The last #Fields directive names the columns, and may come again with other ones. IIS has spaces
// between the columns and CloudFront has tabs. In a column, IIS writes + and CloudFront %20 for a
// space. Times are UTC. Columns with the local time only count as UTC.
type w3cParser struct {
	schema Schema
	names  []string      // of the columns; nil before a directive
	lines  *formatParser // nil before the first line after it
}

// w3cCandidates has the names in lower case. CloudFront's cs(Host) is the name of the
// distribution, and its x-host-header is the requested host. IIS writes X-Forwarded-For under the
// name that its operator chose.
var w3cCandidates = candidates{
	fieldDate:      {"date", "date-local"},
	fieldTime:      {"time", "time-local"},
	fieldPeer:      {"c-ip"},
	fieldForwarded: {"x-forwarded-for", "cs(x-forwarded-for)", "s-xff"},
	fieldUser:      {"cs-username"},
	fieldHost:      {"x-host-header", "cs-host", "cs(host)"},
	fieldURI:       {"cs-uri-stem", "cs-uri"},
	fieldSize:      {"sc-bytes"},
	fieldAgent:     {"cs(user-agent)"},
}

// maxColumns is the most columns that a directive can name. It bounds the memory for them.
const maxColumns = 1000

var (
	errNotW3C   = &lack{0, "want a #Fields directive, or a line after one"}
	errNoFields = &lack{5, "want a #Fields directive before the line"}
	errFields   = &lack{5, "want c-ip, date and time among the columns of #Fields, at most 1000"}

	// errDirective reports a line that is not a request and is not malformed.
	errDirective = errors.New("directive")
)

// newW3CParser returns a parser for the columns of a schema.
func newW3CParser(s Schema) *w3cParser {
	p := &w3cParser{schema: Schema{Names: maps.Clone(s.Names)}}
	for field, name := range s.Names {
		p.schema.Names[field] = strings.ToLower(name)
	}
	for _, name := range s.Extra {
		p.schema.Extra = append(p.schema.Extra, strings.ToLower(name))
	}
	return p
}

// parse returns errDirective for a directive.
func (p *w3cParser) parse(line []byte, rec *Record) (Format, error) {
	if end := bytes.IndexAny(line, ": \""); end > 1 && line[0] == '#' && line[end] == ':' {
		if names, ok := bytes.CutPrefix(line, []byte("#Fields:")); ok {
			p.names, p.lines = strings.Fields(strings.ToLower(string(names))), nil
		}
		return Undetected, errDirective
	}
	if p.names == nil {
		if _, ok := parseTime(line[:min(len(line), len(time.DateTime))], time.DateTime); ok {
			return Undetected, errNoFields
		}
		return Undetected, errNotW3C
	}
	if p.lines == nil && !p.setColumns(line) {
		return Undetected, errFields
	}
	if _, err := p.lines.parse(line, rec); err != nil {
		return Undetected, err
	}
	rec.forwarded = bytes.ReplaceAll(rec.forwarded, []byte(",%20"), []byte(","))
	return W3C, nil
}

// setColumns makes the parser of lines. The first space or tab of the first line separates columns.
func (p *w3cParser) setColumns(line []byte) (ok bool) {
	separator := " "
	if i := bytes.IndexAny(line, " \t"); i >= 0 {
		separator = string(line[i : i+1])
	}
	if len(p.names) == 0 || len(p.names) > maxColumns {
		return false
	}
	format := "${" + strings.Join(p.names, "}"+separator+"${") + "}"
	lines, err := newFormatParser(format, p.schema, w3cCandidates)
	if err != nil || lines.text(fieldDate) == nil && p.schema.Names["time"] == "" {
		return false
	}
	lines.ends, p.lines = true, lines
	return true
}
