package accesslog

import (
	"bytes"
	"strings"

	"github.com/tidwall/gjson"
)

// envelope is a format of lines that hold the lines of a log: a syslog daemon or a container
// runtime wrote them.
type envelope struct {
	name string
	// cut returns the line of the log, and the time that the envelope has for it or nothing. It
	// reports whether a line has this envelope.
	cut func(line []byte) (message, time []byte, ok bool)
}

// envelopes are tried in this order. A line in one of the certain ones is never a request itself.
// The others are only the time, and nothing.
var (
	certain = []envelope{{"syslog", cutSyslog}, {"CRI", cutCRI}, {"Docker", cutDocker}, {"compose",
		cutCompose}}
	uncertain = []envelope{{"time", cutTime}, {"", cutNothing}}
)

// envelopesOf returns the envelopes that a line may be in.
func envelopesOf(line []byte) []envelope {
	for i, e := range certain {
		if _, _, ok := e.cut(line); ok {
			return certain[i : i+1]
		}
	}
	return uncertain
}

func cutNothing(line []byte) (message, time []byte, ok bool) { return line, nil, true }

// cutTime cuts off the time that docker logs --timestamps, kubectl logs --timestamps and the
// exports of CloudWatch write before a line, such as 2015-05-17T10:05:03.123Z.
func cutTime(line []byte) (message, time []byte, ok bool) {
	if !isISOTime(line) {
		return nil, nil, false
	}
	time, message, ok = bytes.Cut(line, space)
	return message, time, ok
}

// cutCRI cuts off what a Kubernetes node writes before a line. The letter is F, or P if the line
// goes on in the next one
// (https://github.com/kubernetes/design-proposals-archive/blob/main/node/kubelet-cri-logging.md):
//
//	2015-05-17T10:05:03.123456789Z stdout F message
func cutCRI(line []byte) (message, time []byte, ok bool) {
	rest, time, ok := cutTime(line)
	for _, prefix := range []string{"stdout F ", "stderr F ", "stdout P ", "stderr P "} {
		if message, found := bytes.CutPrefix(rest, []byte(prefix)); ok && found {
			return message, time, true
		}
	}
	return nil, nil, false
}

// cutDocker takes the line out of an object that Docker wrote to a file:
//
//	{"log":"message\n","stream":"stdout","time":"2015-05-17T10:05:03.123Z"}
func cutDocker(line []byte) (message, time []byte, ok bool) {
	if !bytes.HasPrefix(line, []byte(`{"log":`)) || !gjson.ValidBytes(line) {
		return nil, nil, false
	}
	object := gjson.ParseBytes(line)
	message = bytes.TrimRight([]byte(object.Get("log").Str), "\r\n")
	return message, []byte(object.Get("time").Str), len(message) > 0
}

// cutCompose cuts off the name that docker compose logs writes before a line, and the time after
// it:
//
//	web-1  | message
func cutCompose(line []byte) (message, time []byte, ok bool) {
	name, rest := cutWord(line)
	message, ok = bytes.CutPrefix(bytes.TrimLeft(rest, " "), []byte("| "))
	if !ok || len(name) == 0 {
		return nil, nil, false
	}
	if rest, time, ok := cutTime(message); ok {
		return rest, time, true
	}
	return message, nil, true
}

// cutSyslog cuts off what a syslog daemon writes before a message:
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
		_, rest, ok = bytes.Cut(rest, []byte{'>'})
		if header, is5424 := bytes.CutPrefix(rest, []byte("1 ")); ok && is5424 {
			return cutRFC5424(header)
		}
	}
	if isRFC3164Time(rest) {
		rest = rest[len("May 17 10:05:03 "):]
	} else if rest, time, ok = cutTime(rest); !ok {
		return nil, nil, false
	}
	for range 2 { // the host, which HAProxy leaves out, and the tag
		word, after, ok := bytes.Cut(rest, space)
		if ok && bytes.HasSuffix(word, []byte{':'}) {
			return after, time, true
		}
		rest = after
	}
	return nil, nil, false
}

// cutRFC5424 cuts off the header after the version, and the structured data, which Heroku leaves
// out.
func cutRFC5424(b []byte) (message, time []byte, ok bool) {
	rest, time, ok := cutTime(b)
	for range 4 { // host, application, process and message
		_, rest, _ = bytes.Cut(rest, space)
	}
	if after, found := bytes.CutPrefix(rest, noIdent); found {
		rest = after
	} else if ok && len(rest) > 0 && rest[0] == '[' {
		rest = cutStructuredData(rest)
	}
	return bytes.TrimPrefix(rest, []byte(byteOrderMark)), time, ok && len(rest) > 0
}

// cutStructuredData cuts off elements such as [a@1 b="c"] and the space after them. In a value, a
// backslash escapes a quote or a bracket.
func cutStructuredData(b []byte) (rest []byte) {
	inValue := false
	for i := 0; i < len(b); i++ {
		switch {
		case b[i] == '\\' && inValue:
			i++
		case b[i] == '"':
			inValue = !inValue
		case b[i] == ']' && !inValue && i+1 < len(b) && b[i+1] == ' ':
			return b[i+2:]
		}
	}
	return nil
}

// isRFC3164Time reports whether b begins like "May 17 10:05:03 ".
func isRFC3164Time(b []byte) bool {
	const months = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec "
	return len(b) >= len("May 17 10:05:03 ") && strings.Contains(months, string(b[:4])) &&
		b[6] == ' ' && b[9] == ':' && b[12] == ':' && b[15] == ' '
}

// isISOTime reports whether b begins like "2015-05-17T10:05:03".
func isISOTime(b []byte) bool {
	return len(b) >= len("2015-05-17T10:05:03") && countDigits(b) == 4 && b[4] == '-' &&
		b[7] == '-' && b[10] == 'T' && b[13] == ':'
}
