package accesslog

import (
	"bytes"
	"slices"
)

// envelope is a format of lines that hold the lines of a log: a syslog daemon, a container runtime
// or a log collector wrote them.
type envelope struct {
	name string
	// open returns the line of the log, and the time that the envelope has for it or nothing. It
	// reports whether a line has this envelope.
	open func(line []byte) (message, time []byte, ok bool)
	// certain is whether a line that can be opened is never a request itself. isPrefix is whether a
	// line with a client that is an address is never opened. hasFields is whether the envelope may
	// have parts of a request, too.
	certain, isPrefix, hasFields bool
}

// cut returns what open returns. The zero envelope stands for a line that is in none.
func (e *envelope) cut(line []byte) (message, time []byte, ok bool) {
	if e.open == nil {
		return line, nil, true
	}
	return e.open(line)
}

// newEnvelopes returns the envelopes that are tried, each before the ones that it could be taken
// for.
func newEnvelopes() []envelope {
	return append([]envelope{
		{name: "syslog", open: cutSyslog, certain: true},
		{name: "CRI", open: cutCRI, certain: true},
		{name: "JSON", open: newJSONEnvelope().open, hasFields: true},
		{name: "time", open: cutTimestamp},
		{},
	}, newPrefixes()...)
}

// cutCRI cuts off what a Kubernetes node writes before a line. The letter is F, or P if the line
// goes on in the next one
// (https://github.com/kubernetes/design-proposals-archive/blob/main/node/kubelet-cri-logging.md):
//
//	2015-05-17T10:05:03.123456789Z stdout F message
func cutCRI(line []byte) (message, time []byte, ok bool) {
	time, rest, ok := cutTime(line)
	stream, rest := cutWord(rest)
	tag, rest, _ := cutField(rest)
	ok = ok && (string(stream) == "stdout" || string(stream) == "stderr") &&
		(string(tag) == "F" || string(tag) == "P") && len(rest) > 0
	if !ok {
		return nil, nil, false
	}
	return rest[len(" "):], time, true
}

// cutTimestamp cuts off the time that docker logs --timestamps, kubectl logs --timestamps and the
// exports of CloudWatch write before a line.
func cutTimestamp(line []byte) (message, time []byte, ok bool) {
	time, message, ok = cutTime(line)
	return message, time, ok
}

// cutTime cuts off a time such as 2015-05-17T10:05:03.123Z and the space after it.
func cutTime(line []byte) (time, rest []byte, ok bool) {
	if !isISOTime(line) {
		return nil, nil, false
	}
	return bytes.Cut(line, space)
}

// jsonEnvelope opens JSON objects with a line in a field:
//
//	{"log":"message\n","stream":"stdout","time":"2015-05-17T10:05:03.123Z"}      Docker
//	{"MESSAGE":"message","__REALTIME_TIMESTAMP":"1431857103123456", …}           journalctl -o json
//	{"message":"message","@timestamp":"2015-05-17T10:05:03.123Z", …}             Filebeat and others
//	{"line":"message","timestamp":"2015-05-17T10:05:03.123Z", …}                 logcli -o jsonl
//	{"textPayload":"message","timestamp":"2015-05-17T10:05:03.123Z", …}          Google Cloud
type jsonEnvelope struct {
	scan   scanner
	values [][]byte // of messageFields, and then of timeFields
}

var (
	messageFields = []string{"log", "MESSAGE", "message", "line", "textPayload"}
	timeFields    = []string{"time", "__REALTIME_TIMESTAMP", "@timestamp", "timestamp"}
)

func newJSONEnvelope() *jsonEnvelope {
	e := &jsonEnvelope{scan: scanner{root: &node{}}}
	for slot, name := range slices.Concat(messageFields, timeFields) {
		e.scan.root.add(name, slot, false)
		e.values = append(e.values, nil)
	}
	return e
}

func (e *jsonEnvelope) open(line []byte) (message, time []byte, ok bool) {
	clear(e.values)
	if !isObject(line) || !e.scan.line(line, e.values) {
		return nil, nil, false
	}
	n := len(messageFields)
	message = firstText(e.values[:n])
	return bytes.TrimRight(message, "\r\n"), firstText(e.values[n:]), len(message) > 0
}

// firstText returns the text of the first of several raw values that is not missing.
func firstText(values [][]byte) []byte {
	for _, raw := range values {
		if text := unquote(raw); len(text) > 0 {
			return text
		}
	}
	return nil
}
