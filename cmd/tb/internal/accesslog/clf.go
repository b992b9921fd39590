package accesslog

import (
	"bytes"

	"github.com/seed-181794aa/ratelimit/internal/clientaddr"
)

// clfParser parses lines of Common and Combined Log Format:
//
//	peer ident user [time] "request" status size ["referer" "agent" ["forwarded"]]
//
// setOrigin describes the variants before the time. A line may have further fields, and may
// be cut off after the size, because its request happened.
type clfParser struct {
	time      timeParser
	extra     int  // extra fields of the schema, which are always empty here
	forwarded bool // whether to read Record.Forwarded
}

// Separators and marks. Servers escape the quotes that clients send, so the first endOfTime
// in a line is the server's, whatever a user name contains.
var (
	space     = []byte{' '}
	noIdent   = []byte("- ")
	endOfTime = []byte("] \"")
	http      = []byte("HTTP/")
	scheme    = []byte("://")
)

// parse fills rec from line and returns which of the two formats the line has.
func (p *clfParser) parse(line []byte, rec *Record) (Format, error) {
	rec.reset(p.extra)
	rest, err := p.parseOrigin(line, rec)
	if err != nil {
		return Undetected, err
	}
	request, rest, ok := cutQuoted(rest)
	if !ok {
		return Undetected, errRequest
	}
	host, path := splitRequest(request)
	rec.Path = path
	if host != nil {
		rec.Host = host
	}
	status, rest, ok := cutField(rest)
	if !ok || len(status) != 3 && string(status) != "-" || parseDigits(emptyIfDash(status)) < 0 {
		return Undetected, errStatus
	}
	size, rest, ok := cutField(rest)
	if !ok || !rec.setSize(size) {
		return Undetected, errSize
	}
	if len(rest) == 0 {
		return Common, nil
	}
	if p.forwarded {
		rec.Forwarded = forwardedField(rest)
	}
	return Combined, nil
}

// parseOrigin parses the fields before the request, and returns the rest of the line.
func (p *clfParser) parseOrigin(line []byte, rec *Record) (rest []byte, err error) {
	end := bytes.Index(line, endOfTime)
	if end < 0 {
		return nil, errorBeforeRequest(line)
	}
	open := bytes.LastIndexByte(line[:end], '[')
	if open < 1 || line[open-1] != ' ' || !rec.setOrigin(line[:open-1]) {
		return nil, errOrigin
	}
	var ok bool
	if rec.Time, ok = p.time.clf(line[open+1 : end]); !ok {
		return nil, errTime
	}
	return line[end+len("]"):], nil
}

// setOrigin sets the peer, the user and perhaps the host from the fields before the time:
//
//	peer ident user                     Common Log Format
//	host peer ident user                with the virtual host, or host:port, before it
//	client, proxy, proxy ident user     X-Forwarded-For instead of the peer, with or without
//	                                    the host before it
//
// A user is any text that a client sends, with spaces. The ident is nearly always "-" and
// never an address: if the second field is an address, the first one is the host. Any other
// form is refused. To take a host or a proxy for the peer would put many clients into one
// bucket.
func (rec *Record) setOrigin(b []byte) bool {
	peer, rest := cutList(b)
	ident, user, ok := bytes.Cut(rest, space)
	if string(ident) != "-" && isPeer(ident, user) {
		if isList(peer) || isAddr(peer) {
			return false
		}
		rec.Host = emptyIfDash(withoutPort(peer))
		peer, rest = cutList(rest)
		ident, user, ok = bytes.Cut(rest, space)
		ok = ok && !isAddr(ident)
	}
	rec.Peer, rec.User = emptyIfDash(peer), emptyIfDash(user)
	return ok && len(peer) > 0 && peer[0] != ',' && len(user) > 0
}

// cutList cuts off the first field. A field that ends with a comma continues in the next
// one.
func cutList(b []byte) (list, rest []byte) {
	for end := 0; ; end++ {
		n := bytes.IndexByte(b[end:], ' ')
		if n < 0 {
			return b, nil
		}
		if end += n; end == 0 || b[end-1] != ',' {
			return b[:end], b[end+1:]
		}
	}
}

func isList(b []byte) bool { return bytes.IndexByte(b, ',') >= 0 }

// isPeer reports whether the second field is the peer and not the ident. It is the peer if
// it is an address or a list, or if a "-" follows, which is then the ident.
func isPeer(second, rest []byte) bool {
	return isAddr(second) || isList(second) || bytes.HasPrefix(rest, noIdent)
}

// isAddr reports whether b is an IP address, with or without a port.
func isAddr(b []byte) bool {
	_, ok := clientaddr.Parse(string(b))
	return ok
}

// withoutPort returns a host without its port.
func withoutPort(b []byte) []byte {
	colon := bytes.LastIndexByte(b, ':')
	if colon < 0 || countDigits(b[colon+1:]) < len(b)-colon-1 {
		return b
	}
	return b[:colon]
}

// errorBeforeRequest returns the error of a line that has no request after a time.
func errorBeforeRequest(line []byte) error {
	open := bytes.IndexByte(line, '[')
	switch {
	case open < 0:
		return errOrigin
	case bytes.IndexByte(line[open:], ']') < 0:
		return errTime
	}
	return errRequest
}

// setSize sets the size from digits. A dash leaves it Unknown.
func (rec *Record) setSize(b []byte) bool {
	if len(b) == 0 || len(b) > 18 { // 18 digits always fit
		return false
	}
	if string(b) == "-" {
		return true
	}
	rec.Size = parseDigits(b)
	return rec.Size >= 0
}

// forwardedField returns the third of the quoted fields that b begins with, or nothing if
// there are fewer.
func forwardedField(b []byte) []byte {
	var value []byte
	for range 3 {
		var ok bool
		if value, b, ok = cutQuoted(b); !ok {
			return nil
		}
	}
	return emptyIfDash(value)
}

// cutField cuts off the next field, after a space. The rest begins with the space after the
// field, or is empty.
func cutField(b []byte) (value, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != ' ' {
		return nil, nil, false
	}
	end := bytes.IndexByte(b[1:], ' ')
	if end < 0 {
		return b[1:], nil, true
	}
	return b[1 : 1+end], b[1+end:], true
}

// cutQuoted cuts off the next field, which is in quotes after a space.
func cutQuoted(b []byte) (value, rest []byte, ok bool) {
	if len(b) < 2 || b[0] != ' ' || b[1] != '"' {
		return nil, nil, false
	}
	end := closingQuote(b[1:])
	if end < 0 {
		return nil, nil, false
	}
	return b[2 : 1+end], b[2+end:], true
}

// emptyIfDash returns b, or nothing if b is the "-" that stands for a missing value.
func emptyIfDash(b []byte) []byte {
	if len(b) == 1 && b[0] == '-' {
		return nil
	}
	return b
}

// closingQuote returns the index of the quote that ends the string which begins at b[0], or
// -1. In the string, a backslash escapes the next byte.
func closingQuote(b []byte) int {
	for i := 1; i < len(b); i++ {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return -1
		}
		i += n
		if !endsInEscape(b[1:i]) {
			return i
		}
	}
	return -1
}

// endsInEscape reports whether the byte after b is escaped, because b ends with an odd number
// of backslashes.
func endsInEscape(b []byte) bool {
	n := 0
	for n < len(b) && b[len(b)-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

// splitRequest returns the host and the path of a request line, "GET /path?query HTTP/1.1".
// Servers log the line as the client sent it. So a path may contain spaces, and a TLS
// handshake on a plain port is a line of a single word, which has neither host nor path.
func splitRequest(line []byte) (host, path []byte) {
	_, uri, ok := bytes.Cut(line, space)
	if !ok {
		return nil, nil
	}
	if i := bytes.LastIndexByte(uri, ' '); i >= 0 && bytes.HasPrefix(uri[i+1:], http) {
		uri = uri[:i]
	}
	return splitURI(uri)
}

// splitURI splits "/path?query", or "http://host/path" of a request to a proxy.
func splitURI(uri []byte) (host, path []byte) {
	if i := bytes.IndexAny(uri, "?#"); i >= 0 {
		uri = uri[:i]
	}
	if len(uri) == 0 || uri[0] == '/' {
		return nil, uri
	}
	_, rest, ok := bytes.Cut(uri, scheme)
	if !ok {
		return nil, uri
	}
	if slash := bytes.IndexByte(rest, '/'); slash >= 0 {
		return rest[:slash], rest[slash:]
	}
	return rest, nil
}
