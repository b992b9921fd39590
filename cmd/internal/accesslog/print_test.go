package accesslog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// extra are the additional fields that printed lines have, in JSON.
var extra = Schema{Extra: []string{"a", "request.headers.X"}, Forwarded: true}

// appendLine appends rec as a line of the given format. Different lines that mean the same
// request have one such line.
func appendLine(b []byte, f Format, rec *Record) []byte {
	if f == JSON {
		return appendJSON(b, rec)
	}
	host, request := requestLine(rec)
	if len(host) > 0 {
		// No IPv4 address has that port, so the text before it is a virtual host.
		before := fmt.Appendf(nil, "%s:999999", host)
		if isAddr(before) { // the port would belong to a zone
			before = host
		}
		b = append(append(b, before...), ' ')
	}
	b = fmt.Appendf(b, `%s - %s [%s] "%s" 200 `, orDash(rec.Peer), orDash(rec.User),
		instant(rec.Time).Format("02/Jan/2006:15:04:05 -0700"), orDash(request))
	if rec.Size == Unknown {
		b = append(b, '-')
	} else {
		b = fmt.Append(b, rec.Size)
	}
	if f == Combined {
		b = append(b, ` "-" "-"`...)
	}
	if len(rec.Forwarded) > 0 {
		b = fmt.Appendf(b, ` "%s"`, rec.Forwarded)
	}
	return b
}

func appendJSON(b []byte, rec *Record) []byte {
	switch {
	case rec.Time < leastEpoch: // a number would not be a time
		b = fmt.Appendf(b, `{"ts":"%s"`, instant(rec.Time).Format("2006-01-02T15:04:05.000000000Z07:00"))
	case rec.Time < 1e17:
		b = fmt.Appendf(b, `{"ts":%d.%09d`, rec.Time/1e9, rec.Time%1e9)
	default: // a number of this size is in nanoseconds
		b = fmt.Appendf(b, `{"ts":%d`, rec.Time)
	}
	member := func(name string, text []byte, end string) {
		if len(text) > 0 {
			b = fmt.Appendf(b, `,%s:%s%s`, name, quote(text), end)
		}
	}
	host, request := requestLine(rec)
	member(`"ip"`, rec.Peer, "")
	member(`"user"`, rec.User, "")
	member(`"host"`, host, "")
	member(`"uri"`, request, "")
	if rec.Size != Unknown {
		b = fmt.Appendf(b, `,"size":%d`, rec.Size)
	}
	member(`"a"`, rec.Fields[0], "")
	switch {
	case len(rec.Forwarded) == 0:
		member(`"request":{"headers":{"X"`, rec.Fields[1], "}}")
	case len(rec.Fields[1]) == 0:
		member(`"request":{"headers":{"X-Forwarded-For"`, rec.Forwarded, "}}")
	default:
		member(`"request":{"headers":{"X"`, rec.Fields[1], "")
		member(`"X-Forwarded-For"`, rec.Forwarded, "}}")
	}
	return append(b, '}')
}

// requestLine returns a request line for the path, or nothing for none. The host is part of
// it, as in a request to a proxy, or is returned if it cannot be.
func requestLine(rec *Record) (host, line []byte) {
	quoted := slices.Concat([]byte{'"'}, rec.Host)
	switch {
	case len(rec.Host) > 0 && (len(rec.Path) == 0 || rec.Path[0] == '/') &&
		!bytes.ContainsAny(rec.Host, "/?#") && closingQuote(quoted) < 0:
		return nil, fmt.Appendf(nil, "GET http://%s%s HTTP/1.1", rec.Host, rec.Path)
	case len(rec.Path) == 0:
		return rec.Host, nil
	}
	return rec.Host, fmt.Appendf(nil, "GET %s HTTP/1.1", rec.Path)
}

// instant returns a time as the formats can write it: in UTC, but for the last day of the
// year 2261, which goes on in the west when it is over in UTC.
func instant(ns int64) time.Time {
	t := time.Unix(0, ns).UTC()
	if t.Year() > maxYear {
		t = t.In(time.FixedZone("", -(23*60+59)*60))
	}
	return t
}

// quote writes a text as JSON. A text without escapes stays as it is, even if it is not UTF-8,
// as in the parser. A text that needs an escape came from an escape, and so is UTF-8.
func quote(text []byte) []byte {
	if !bytes.ContainsAny(text, "\"\\\n") {
		return slices.Concat([]byte{'"'}, text, []byte{'"'})
	}
	b, _ := json.Marshal(string(text)) // a string always can be
	return b
}

func orDash(b []byte) []byte {
	if len(b) == 0 {
		return []byte{'-'}
	}
	return b
}
