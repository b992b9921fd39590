package accesslog

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
)

// formatParser parses the lines of a log_format of nginx
// (https://nginx.org/en/docs/http/ngx_http_log_module.html#log_format), such as
//
//	$remote_addr [$time_iso8601] "$request" $status $body_bytes_sent
//
// A variable ends where the text after it in the format begins. In quotes, a backslash escapes the
// next byte. A line may go on after the end of the format, so a variable there ends with its word,
// its time, its list or its request. A variable that no field of a Record comes from is passed
// over.
type formatParser struct {
	fields
	format    Format
	before    []byte // the text before the first variable
	variables []variable
}

// variable is a variable of a format.
type variable struct {
	slots   []int
	is      func(b []byte) bool // reports whether a value can be one; nil for any value
	last    func(b []byte) int  // returns the length of the value at the end of a format
	after   []byte              // the text up to the next variable; empty at the end
	missing *lack               // reports that the text is not there
}

// formatCandidates are variables of nginx. $msec has milliseconds. $proxy_add_x_forwarded_for is
// X-Forwarded-For with the peer at its end.
var formatCandidates = candidates{
	fieldTime:      {"msec", "time_iso8601", "time_local"},
	fieldPeer:      {"remote_addr", "proxy_add_x_forwarded_for", "http_x_forwarded_for"},
	fieldForwarded: {"http_x_forwarded_for"},
	fieldUser:      {"remote_user"},
	fieldHost:      {"http_host", "host", "server_name"},
	fieldURI:       {"request", "request_uri", "uri"},
	fieldSize:      {"body_bytes_sent", "bytes_sent"},
	fieldAgent:     {"http_user_agent"},
}

var errFormatClient = &lack{3, "want an address or the name of a host as the client"}

// newFormatParser returns a parser for s.LogFormat. In it, \t is a tab, as in nginx.
func newFormatParser(s Schema) (*formatParser, error) {
	p := &formatParser{fields: newFields(s, formatCandidates, plain), format: LogFormat}
	text, rest, _ := strings.Cut(strings.ReplaceAll(s.LogFormat, `\t`, "\t"), "$")
	p.before = []byte(text)
	for more := rest != ""; more; {
		var name string
		name, rest = cutVariable(rest)
		text, rest, more = strings.Cut(rest, "$")
		if name == "" || more && text == "" {
			return nil, fmt.Errorf("%q: want a name after each $, and text after each variable"+
				" but the last", s.LogFormat)
		}
		slots := p.slots(name)
		p.set(slots, []byte(name))
		want := fmt.Sprintf("want %q after $%s", text, name)
		p.variables = append(p.variables, variable{
			slots: slots, is: strict[name], last: lastLength(name), after: []byte(text),
			missing: &lack{0, want},
		})
	}
	if p.text(fieldTime) == nil {
		return nil, fmt.Errorf("%q has no time: want $time_local, $time_iso8601 or $msec",
			s.LogFormat)
	}
	if p.text(fieldPeer) == nil {
		return nil, fmt.Errorf("%q has no client: want $remote_addr or $http_x_forwarded_for",
			s.LogFormat)
	}
	return p, nil
}

// cutVariable cuts off the name that s begins with, which may be in braces.
func cutVariable(s string) (name, rest string) {
	if inBraces, ok := strings.CutPrefix(s, "{"); ok {
		name, rest, _ = strings.Cut(inBraces, "}")
		return name, rest
	}
	rest = strings.TrimLeft(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
	return s[:len(s)-len(rest)], rest
}

func (p *formatParser) parse(line []byte, rec *Record) (Format, error) {
	rest, ok := bytes.CutPrefix(line, p.before)
	if !ok {
		return Undetected, &lack{0, fmt.Sprintf("want %q at the start", p.before)}
	}
	clear(p.values)
	for i := range p.variables {
		v := &p.variables[i]
		end := v.end(rest)
		if end < 0 || v.is != nil && !v.is(rest[:end]) {
			return Undetected, v.missing
		}
		p.set(v.slots, rest[:end])
		rest = rest[end+len(v.after):]
	}
	if err := p.fill(rec); err != nil {
		return Undetected, err
	}
	if !isClient(rec.Peer) {
		return Undetected, errFormatClient
	}
	return p.format, nil
}

// strict has the variables whose values have one form. They tell the known formats apart.
var strict = map[string]func(b []byte) bool{
	"owner":  isCanonicalUser,
	"status": isStatus,
}

// isCanonicalUser reports whether b is the canonical user of an owner in AWS, 64 hexadecimal digits.
func isCanonicalUser(b []byte) bool {
	_, err := hex.Decode(make([]byte, 32), b[:min(len(b), 64)])
	return err == nil && len(b) == 64
}

// end returns where the value ends that b begins with, or -1.
func (v *variable) end(b []byte) int {
	if len(v.after) == 0 {
		return v.last(b)
	}
	for end := 0; ; end++ {
		n := bytes.Index(b[end:], v.after)
		if n < 0 {
			return -1
		}
		if end += n; v.after[0] != '"' || !endsInEscape(b[:end]) {
			return end
		}
	}
}

// lastLength returns a function that returns the length of the value of a variable that b begins
// with.
func lastLength(name string) func(b []byte) int {
	switch {
	case name == "time_local":
		return func(b []byte) int { return min(len(b), len("17/May/2015:10:05:03 +0000")) }
	case name == "request":
		return func(b []byte) int {
			if i := bytes.Index(b, []byte(" HTTP/")); i >= 0 {
				version, _ := cutWord(b[i+1:])
				return i + 1 + len(version)
			}
			return len(b)
		}
	case strings.HasSuffix(name, "forwarded_for"):
		return func(b []byte) int {
			list, _ := cutList(b)
			return len(list)
		}
	}
	return func(b []byte) int {
		word, _ := cutWord(b)
		return len(word)
	}
}
