package accesslog

import "bytes"

// haproxyParser parses the HTTP log of HAProxy, option httplog, and the HTTPS log, which has
// further fields after the request (https://docs.haproxy.org/dev/configuration.html#8.2.3):
//
//	client:port [time] frontend backend/server timers status size cookie cookie state counters
//	queues {headers} {headers} "request"
//
// HAProxy writes #22 for a quote, so the quotes of the request are the only ones. syslog may cut
// the line off in the request. An IPv6 address has no brackets. The request of an invalid message
// is <BADREQ>. The captured headers have no names, so X-Forwarded-For is not read.
type haproxyParser struct{ time timeParser }

var (
	errProxyOrigin  = &lack{0, "want `client:port [time] frontend backend/server` and so on"}
	errProxyTime    = &lack{1, "want a time like [17/May/2015:10:05:03.123], 1970 to 2261"}
	errProxyTimers  = &lack{2, "want a frontend, a backend/server and timers after the time"}
	errProxyStatus  = &lack{3, "want a status of three digits after the timers"}
	errProxySize    = &lack{4, "want a size in bytes after the status"}
	errProxyRequest = &lack{5, "want a quoted request at the end"}
)

var slash = []byte{'/'}

func (p *haproxyParser) parse(line []byte, rec *Record) (Format, error) {
	client, rest, ok := bytes.Cut(line, []byte(" ["))
	if !ok || len(client) == 0 || bytes.IndexByte(client, ' ') >= 0 {
		return Undetected, errProxyOrigin
	}
	time, rest, _ := bytes.Cut(rest, []byte{']'})
	if rec.Time, ok = p.time.clfMillis(time); !ok {
		return Undetected, errProxyTime
	}
	rec.Peer = withoutPort(client)
	server, rest, _ := cutField(skipFields(rest, 1))
	timers, rest, _ := cutField(rest)
	if bytes.Count(server, slash) != 1 || bytes.Count(timers, slash) != 4 {
		return Undetected, errProxyTimers
	}
	status, rest, ok := cutField(rest)
	if !ok || !isStatus(status) && string(status) != "-1" {
		return Undetected, errProxyStatus
	}
	size, rest, ok := cutField(rest)
	if !ok || !rec.setSize(bytes.TrimPrefix(size, []byte{'+'})) {
		return Undetected, errProxySize
	}
	_, request, ok := bytes.Cut(rest, []byte{'"'})
	if !ok {
		return Undetected, errProxyRequest
	}
	request, _, _ = bytes.Cut(request, []byte{'"'})
	rec.setTarget(splitRequest(request))
	return HAProxy, nil
}
