package accesslog

import (
	"bytes"
	"strings"
)

// maxSyslogWords is how many words may stand between the time and the message of RFC 3164: the
// host, which HAProxy leaves out, and the tag.
const maxSyslogWords = 2

// cutSyslog cuts off what a syslog daemon writes before a message, and reports whether the line
// has it:
//
//	<134>1 2015-05-17T10:05:03.123Z host haproxy 4711 - [a@1 b="c"] message    RFC 5424
//	<134>May 17 10:05:03 host haproxy[4711]: message                           RFC 3164
//	2015-05-17T10:05:03.123456+00:00 host haproxy[4711]: message               rsyslog
//
// The priority in front and the host of the last two may be missing. The time of RFC 3164 has no
// year, so it is not returned.
func cutSyslog(line []byte) (message, time []byte, ok bool) {
	rest := line
	if len(rest) > 0 && rest[0] == '<' {
		end := 1 + countDigits(rest[1:])
		if end == 1 || end == len(rest) || rest[end] != '>' {
			return nil, nil, false
		}
		rest = rest[end+1:]
		if header, ok := bytes.CutPrefix(rest, []byte("1 ")); ok {
			return cutRFC5424(header)
		}
	}
	switch {
	case isRFC3164Time(rest):
		rest = rest[len("May 17 10:05:03 "):]
	case isISOTime(rest):
		time, rest, _ = bytes.Cut(rest, space)
	default:
		return nil, nil, false
	}
	for range maxSyslogWords {
		word, after, ok := bytes.Cut(rest, space)
		if !ok {
			return nil, nil, false
		}
		if bytes.HasSuffix(word, []byte{':'}) {
			return after, time, true
		}
		rest = after
	}
	return nil, nil, false
}

// cutRFC5424 cuts off the header after the version, and the structured data, which Heroku leaves
// out.
func cutRFC5424(b []byte) (message, time []byte, ok bool) {
	time, rest, _ := bytes.Cut(b, space)
	for range 4 { // host, application, process and message
		_, rest, _ = bytes.Cut(rest, space)
	}
	if !isISOTime(time) || len(rest) == 0 {
		return nil, nil, false
	}
	if after, ok := bytes.CutPrefix(rest, noIdent); ok {
		rest = after
	} else if rest[0] == '[' {
		if rest, ok = cutStructuredData(rest); !ok {
			return nil, nil, false
		}
	}
	return bytes.TrimPrefix(rest, []byte(byteOrderMark)), time, true
}

// cutStructuredData cuts off elements such as [a@1 b="c"] and the space after them. In a value, a
// backslash escapes a quote or a bracket.
func cutStructuredData(b []byte) (rest []byte, ok bool) {
	inValue := false
	for i := 0; i < len(b); i++ {
		switch {
		case b[i] == '\\' && inValue:
			i++
		case b[i] == '"':
			inValue = !inValue
		case b[i] == ']' && !inValue && i+1 < len(b) && b[i+1] == ' ':
			return b[i+2:], true
		}
	}
	return nil, false
}

// isRFC3164Time reports whether b begins like "May 17 10:05:03 ".
func isRFC3164Time(b []byte) bool {
	return len(b) >= len("May 17 10:05:03 ") && strings.Index(months, string(b[:3]))%4 == 1 &&
		b[3] == ' ' && b[6] == ' ' && b[9] == ':' && b[12] == ':' && b[15] == ' '
}

// isISOTime reports whether b begins like "2015-05-17T10:05:03".
func isISOTime(b []byte) bool {
	return len(b) >= len("2015-05-17T10:05:03") && isISODate(b) && b[10] == 'T' && b[13] == ':'
}

// isISODate reports whether b begins like "2015-05-17".
func isISODate(b []byte) bool {
	return len(b) >= len("2015-05-17") && countDigits(b) == 4 && b[4] == '-' && b[7] == '-'
}
