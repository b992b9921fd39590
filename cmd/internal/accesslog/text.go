package accesslog

import (
	"bytes"

	"github.com/seed-181794aa/ratelimit/internal/clientaddr"
)

const digits = "0123456789"

var space = []byte{' '}

func withoutPort(b []byte) []byte {
	if colon := bytes.LastIndexByte(b, ':'); colon >= 0 && consistsOf(b[colon+1:], digits) {
		return b[:colon]
	}
	return b
}

// isStatus reports whether b is a status of a response, or a dash for none.
func isStatus(b []byte) bool {
	return len(b) == 3 && parseDigits(b) >= 0 || string(b) == "-"
}

// isSize reports whether b is a number of bytes, or a dash for none.
func isSize(b []byte) bool {
	return len(b) > 0 && len(b) <= 18 && parseDigits(b) >= 0 || string(b) == "-"
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
	b, ok = bytes.CutPrefix(b, []byte(` "`))
	end := unescaped(b, []byte{'"'})
	if !ok || end < 0 {
		return nil, nil, false
	}
	return b[:end], b[end+1:], true
}

// emptyIfDash returns b, or nothing if b is the "-" that stands for a missing value.
func emptyIfDash(b []byte) []byte {
	if len(b) == 1 && b[0] == '-' {
		return nil
	}
	return b
}

// unescaped returns where a text begins in b, or -1. A quote at its beginning is not escaped: no
// odd number of backslashes is in front of it.
func unescaped(b, text []byte) int {
	for end := 0; ; end++ {
		n := bytes.Index(b[end:], text)
		if n < 0 {
			return -1
		}
		end += n
		if slashes := end - len(bytes.TrimRight(b[:end], `\`)); text[0] != '"' || slashes%2 == 0 {
			return end
		}
	}
}

// setRequest sets the parts of a request line, "GET /path?query HTTP/1.1". Servers log the line as
// the client sent it. So a path may contain spaces, and a TLS handshake on a plain port is a line
// of a single word, which has no part. Load balancers write a dash for each part that a request
// lacks, as in "- http://host- -". Flask colours the lines of most statuses, in files, too.
func (rec *Record) setRequest(line []byte) {
	method, uri, ok := bytes.Cut(bytes.TrimSuffix(line, []byte(" -")), space)
	if !ok {
		return
	}
	if i := bytes.LastIndexByte(uri, ' '); i >= 0 && bytes.HasPrefix(uri[i+1:], []byte("HTTP/")) {
		uri = uri[:i]
	}
	rec.setURI(uri)
	if bytes.HasPrefix(method, []byte("\x1b[")) {
		method = method[bytes.LastIndexByte(method, 'm')+1:]
	}
	if string(method) == "WebSocket" { // of uvicorn
		method = []byte("GET")
	}
	rec.Method, rec.Path = emptyIfDash(method), emptyIfDash(rec.Path)
}

// setURI sets the parts of "/path?query", or of "http://host/path" of a request to a proxy. Without
// a host, the record keeps the one that it has.
func (rec *Record) setURI(uri []byte) {
	uri, rec.Query, _ = bytes.Cut(uri, []byte{'?'})
	uri, _, _ = bytes.Cut(uri, []byte{'#'})
	rec.Path = uri
	if len(uri) == 0 || uri[0] == '/' {
		return
	}
	if _, rest, ok := bytes.Cut(uri, []byte("://")); ok {
		slash := bytes.IndexByte(rest, '/')
		if rec.Path = nil; slash >= 0 {
			rest, rec.Path = rest[:slash], rest[slash:]
		}
		rec.Host = bytes.TrimSuffix(rest, []byte{'-'})
	}
}

// isHostName reports whether b has only the bytes of the names of hosts and of IPv4 addresses,
// perhaps with a port, and is not empty.
func isHostName(b []byte) bool {
	for _, c := range withoutPort(b) {
		if c != '.' && c != '-' && c != '_' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return len(b) > 0
}

// isClient reports whether b is an address, the name of a host, a list of X-Forwarded-For, the
// socket of nginx, or nothing. The number of a line before an IPv6 address, 17:2001:db8::7, is not
// an address that is in use.
func isClient(b []byte) bool {
	if len(b) == 0 || isHostName(b) || string(b) == "unix:" {
		return true
	}
	if isList(b) {
		return consistsOf(b, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-_:[]%, ")
	}
	a, ok := clientaddr.Parse(string(b))
	first := a.As16()[0]
	return ok && (a.Is4() || first>>5 == 1 || first >= 0xfc || a.IsLoopback() || a.IsUnspecified() ||
		clientaddr.Embedded(a) != a)
}
