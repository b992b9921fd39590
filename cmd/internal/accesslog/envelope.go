package accesslog

import (
	"bytes"
	"regexp"
	"slices"

	"github.com/tidwall/gjson"
)

// envelope is a format of lines that hold the lines of a log: a syslog daemon or a container
// runtime wrote them.
type envelope struct {
	name    string
	pattern *regexp.Regexp // what is in front of a line, perhaps with its time as a group
}

// stamp is the time in an envelope, such as 2015-05-17T10:05:03.123Z.
const stamp = `(\d{4}-\d\d-\d\dT\d\d:\S*)`

// docker is an object in a file of Docker:
//
//	{"log":"message\n","stream":"stdout","time":"2015-05-17T10:05:03.123Z"}
const docker = "Docker"

// certain are tried in this order. A line in one of them is never a request itself.
//
//	<134>1 2015-05-17T10:05:03.123Z host haproxy 4711 - [a@1 b="c"] message    RFC 5424
//	<134>May 17 10:05:03 host haproxy[4711]: message                           RFC 3164
//	2015-05-17T10:05:03.123456+00:00 host haproxy[4711]: message               rsyslog
//	2015-05-17T10:05:03.123456789Z stdout F message                            Kubernetes (CRI)
//	web-1  | message                                                           docker compose
//	[pod/web-1/nginx] message                                                  kubectl logs --prefix
//
// Heroku leaves out the structured data of RFC 5424. The priority in front of the other forms of
// syslog and their host may be missing, and JSON, uWSGI or W3C may stand behind a time instead. The
// time of RFC 3164 has no year, so it is no group.
var certain = []envelope{
	{"syslog", regexp.MustCompile(`^<\d+>1 ` + stamp +
		` \S+ \S+ \S+ \S+ (?:- |(?:\[(?:[^"\]]|"(?:[^"\\]|\\.)*")*\])+ )?(?:\x{feff})?`)},
	{"syslog of old", regexp.MustCompile(`^(?:<\d+>)?` +
		`(?:(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d \d\d:\d\d:\d\d|` + stamp +
		`) (?:[^\[{# ]\S* )??[^\[{# ]\S*: `)},
	{"CRI", regexp.MustCompile(`^` + stamp + ` std(?:out|err) [FP] `)},
	{docker, regexp.MustCompile(`^\{"log":`)},
	{"compose", regexp.MustCompile(`^\S+ +\| (?:` + stamp + ` )?`)},
	{"pod", regexp.MustCompile(`^\[pod/\S+\] (?:` + stamp + ` )?`)},
}

// uncertain are the time that docker logs --timestamps, kubectl logs --timestamps and the exports
// of CloudWatch write before a line, and nothing.
var uncertain = []envelope{{"time", regexp.MustCompile(`^` + stamp + ` `)}, {}}

// envelopesOf returns the envelopes that a line may be in. A line in a format of the user may look
// as if it were in one.
func envelopesOf(line []byte, given bool) []envelope {
	for i, e := range certain {
		if _, _, ok := e.cut(line); ok && !given {
			return certain[i : i+1]
		}
	}
	return slices.Concat(certain, uncertain)
}

// cut returns the line of the log, and the time that the envelope has for it or nothing. It reports
// whether a line has this envelope.
func (e *envelope) cut(line []byte) (message, time []byte, ok bool) {
	if e.pattern == nil {
		return line, nil, true
	}
	at := e.pattern.FindSubmatchIndex(line)
	// The level in front of the requests of uvicorn is not the name of a program in syslog.
	if at == nil || bytes.HasSuffix(line[:at[1]], []byte(" INFO: ")) {
		return nil, nil, false
	}
	if e.name == docker {
		if !gjson.ValidBytes(line) {
			return nil, nil, false
		}
		object := gjson.ParseBytes(line)
		message = bytes.TrimRight([]byte(object.Get("log").Str), "\r\n")
		time = []byte(object.Get("time").Str)
	} else {
		message = line[at[1]:]
		if len(at) > 2 && at[2] >= 0 {
			time = line[at[2]:at[3]]
		}
	}
	return message, time, len(message) > 0
}
