package accesslog

import "bytes"

// clfParser parses lines of Common and Combined Log Format:
//
//	client ident user [time] "request" status size ["referer" "agent" …]
//
// What may stand for the client, or before it, is in setOrigin.
// What follows the size is not looked at. So further fields are fine, and so is a
// line that was cut off there: its request happened.
type clfParser struct {
	time   timeParser
	fields int // extra fields asked for: always empty here
}

// parse fills rec from line and says which of the two formats it is.
func (p *clfParser) parse(line []byte, rec *Record) (Format, error) {
	rec.reset(p.fields)
	rest, err := p.client(line, rec)
	if err != nil {
		return Undetected, err
	}
	end := closingQuote(rest)
	if end < 0 {
		return Undetected, errRequest
	}
	host, path := target(rest[1:end])
	rec.Path = path
	if host != nil {
		rec.Host = host
	}
	status, rest, ok := field(rest[end+1:])
	if !ok || len(status) != 3 && string(status) != "-" || number(dash(status)) < 0 {
		return Undetected, errStatus
	}
	size, rest, ok := field(rest)
	if !ok || !rec.setSize(size) {
		return Undetected, errSize
	}
	if len(rest) == 0 {
		return Common, nil
	}
	return Combined, nil
}

// endOfTime is what ends a time, and begins the request. Servers escape the quotes of what
// clients send, so the first one is not the client's, whatever brackets its name has.
var endOfTime = []byte("] \"")

// client parses what stands before the request, and returns what follows.
func (p *clfParser) client(line []byte, rec *Record) (rest []byte, err error) {
	end := bytes.Index(line, endOfTime)
	if end < 0 {
		return nil, noRequest(line)
	}
	open := bytes.LastIndexByte(line[:end], '[')
	if open < 1 || line[open-1] != ' ' || !rec.setOrigin(line[:open-1]) {
		return nil, errClient
	}
	var ok bool
	if rec.Time, ok = p.time.clf(line[open+1 : end]); !ok {
		return nil, errTime
	}
	return line[end+len("] "):], nil
}

// noRequest says what is wrong with a line in which no request follows a time.
func noRequest(line []byte) error {
	open := bytes.IndexByte(line, '[')
	switch {
	case open < 0:
		return errClient
	case bytes.IndexByte(line[open:], ']') < 0:
		return errTime
	}
	return errRequest
}

// setSize sets the size from digits, or leaves it Unknown for a dash.
func (rec *Record) setSize(b []byte) bool {
	if len(b) == 0 || len(b) > 18 { // 18 digits always fit
		return false
	}
	if string(b) == "-" {
		return true
	}
	rec.Size = number(b)
	return rec.Size >= 0
}

var space = []byte{' '}

// field splits the next field off, which a space precedes. The rest begins with the
// space after it, or is empty.
func field(b []byte) (value, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != ' ' {
		return nil, nil, false
	}
	end := bytes.IndexByte(b[1:], ' ')
	if end < 0 {
		return b[1:], nil, true
	}
	return b[1 : 1+end], b[1+end:], true
}

// dash returns b, or nothing if it is the "-" that stands for nothing.
func dash(b []byte) []byte {
	if len(b) == 1 && b[0] == '-' {
		return nil
	}
	return b
}

// closingQuote returns where the string that begins at b[0] ends. Inside it, a
// backslash escapes the byte that follows.
func closingQuote(b []byte) int {
	for i := 1; i < len(b); i++ {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return -1
		}
		i += n
		if !escaped(b[1:i]) {
			return i
		}
	}
	return -1
}

// escaped says whether the byte after b is escaped: an odd number of backslashes
// precedes it.
func escaped(b []byte) bool {
	n := 0
	for n < len(b) && b[len(b)-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

// target takes host and path out of a request line, "GET /path?query HTTP/1.1". Servers
// log that as the client sent it, so a path may contain spaces, and what came in on a
// plain port may be a TLS handshake: a line of a single word has neither host nor path.
func target(request []byte) (host, path []byte) {
	_, uri, ok := bytes.Cut(request, space)
	if !ok {
		return nil, nil
	}
	if i := bytes.LastIndexByte(uri, ' '); i >= 0 && bytes.HasPrefix(uri[i+1:], http) {
		uri = uri[:i]
	}
	return splitURI(uri)
}

// What marks a protocol version, and the scheme of an absolute URI.
var (
	http   = []byte("HTTP/")
	scheme = []byte("://")
)

// splitURI splits "/path?query", or "http://host/path" as sent to a proxy.
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
	slash := bytes.IndexByte(rest, '/')
	if slash < 0 {
		return rest, nil
	}
	return rest[:slash], rest[slash:]
}
