package accesslog

import "bytes"

// envoyParser parses the default access log of Envoy
// (https://www.envoyproxy.io/docs/envoy/latest/configuration/observability/access_log/usage):
//
//	[time] "request" status flags received sent duration service-time
//	"forwarded" "agent" "id" "host" "upstream"
//
// and of Istio, in text (https://istio.io/latest/docs/tasks/observability/logs/access-log):
//
//	[time] "request" status flags details termination "failure" received sent duration service-time
//	"forwarded" "agent" "id" "host" "upstream" cluster local-address local-address peer name route
//
// Envoy's log has no peer. Envoy has appended the peer to X-Forwarded-For, if it is configured to
// use the remote address. Envoy escapes nothing: a client that sends a quote in X-Forwarded-For or
// in the path may have its line misread. A TCP connection is logged as the request "- - -" with the
// status 0.
type envoyParser struct {
	time      timeParser
	forwarded bool // whether to read Record.Forwarded
}

var (
	errEnvoyTime    = &lack{0, "want a time like [2015-05-17T10:05:03.123Z], 1970 to 2261"}
	errEnvoyRequest = &lack{1, "want a quoted request after the time"}
	errEnvoyStatus  = &lack{2, "want a status of one to three digits after the request"}
	errEnvoySize    = &lack{3, "want a size in bytes in the third field after the status, or with" +
		" Istio after the reason of a failure in quotes"}
	errEnvoyHeaders = &lack{4, "want X-Forwarded-For and four more fields in quotes after the size"}
	errIstioPeer    = &lack{5, "want the peer in the fourth field after the fields in quotes"}

	// errConnection reports a line of a log in which proxies also write TCP connections.
	errConnection = &lack{5, "want an HTTP request: the line is a TCP connection"}
)

// The marks of fields in quotes.
var (
	spaceQuote    = []byte(" \"")
	endOfQuoted   = []byte("\" ")
	betweenQuoted = []byte("\" \"")
)

func (p *envoyParser) parse(line []byte, rec *Record) (Format, error) {
	rest, err := p.parseRequest(line, rec)
	if err != nil {
		return Undetected, err
	}
	rest, hasReasons := cutReasons(rest)
	size, rest, _ := cutField(skipFields(rest, 1))
	if !rec.setSize(size) {
		return Undetected, errEnvoySize
	}
	rest = skipFields(rest, 2)
	if hasReasons {
		return Istio, p.setIstioHeaders(rest, rec)
	}
	if !rec.setEnvoyHeaders(rest) {
		return Undetected, errEnvoyHeaders
	}
	return Envoy, nil
}

// parseRequest parses the fields up to the flags, and returns the rest of the line.
func (p *envoyParser) parseRequest(line []byte, rec *Record) (rest []byte, err error) {
	time, rest, _ := bytes.Cut(line, endOfTime)
	if len(time) == 0 || time[0] != '[' {
		return nil, errEnvoyTime
	}
	var ok bool
	if rec.Time, ok = p.time.rfc3339(time[1:]); !ok {
		return nil, errEnvoyTime
	}
	request, rest, ok := bytes.Cut(rest, endOfQuoted)
	if !ok {
		return nil, errEnvoyRequest
	}
	rec.setTarget(splitDashed(request))
	status, rest := cutWord(rest)
	if len(status) == 0 || len(status) > 3 || parseDigits(status) < 0 {
		return nil, errEnvoyStatus
	}
	if string(status) == "0" && isDashes(request) {
		return nil, errConnection
	}
	return skipFields(rest, 1), nil
}

// cutReasons cuts off the three fields that only Istio has between the flags and the sizes. The
// last one is in quotes.
func cutReasons(b []byte) (rest []byte, ok bool) {
	if received, _, _ := cutField(b); parseDigits(received) >= 0 {
		return b, false
	}
	_, rest, _ = bytes.Cut(b, spaceQuote)
	_, rest, _ = bytes.Cut(rest, []byte{'"'})
	return rest, true
}

// setIstioHeaders sets the peer and the host from the fields in quotes and the addresses after
// them.
func (p *envoyParser) setIstioHeaders(b []byte, rec *Record) error {
	end := bytes.LastIndexByte(b, '"') + 1
	peer, _, ok := cutField(skipFields(b[end:], 3))
	if !rec.setEnvoyHeaders(b[:end]) {
		return errEnvoyHeaders
	}
	if !ok {
		return errIstioPeer
	}
	if p.forwarded {
		rec.Forwarded = rec.Peer
	}
	rec.Peer = emptyIfDash(peer)
	return nil
}

// setEnvoyHeaders sets the peer and the host from the five fields in quotes. It reads the host
// from the right, because a client chooses the fields before it.
func (rec *Record) setEnvoyHeaders(b []byte) bool {
	b, ok := bytes.CutPrefix(b, spaceQuote)
	forwarded, rest, _ := bytes.Cut(b, betweenQuoted)
	rest, _, _ = cutLastQuoted(rest)
	rest, host, _ := cutLastQuoted(rest)
	agent, _, hasAgent := cutLastQuoted(rest)
	rec.agent = emptyIfDash(agent)
	rec.Peer = emptyIfDash(forwarded)
	if host = emptyIfDash(host); host != nil {
		rec.Host = host
	}
	return ok && hasAgent
}

// cutLastQuoted cuts off the last of several fields in quotes.
func cutLastQuoted(b []byte) (rest, value []byte, ok bool) {
	end := bytes.LastIndex(b, betweenQuoted)
	if end < 0 {
		return nil, nil, false
	}
	return b[:end], b[end+len(betweenQuoted):], true
}
