package accesslog

import "bytes"

// envoyParser parses the default access log of Envoy
// (https://www.envoyproxy.io/docs/envoy/latest/configuration/observability/access_log/usage):
//
//	[time] "request" status flags received sent duration service-time
//	"forwarded" "agent" "id" "host" "upstream"
//
// The log has no peer. Envoy has appended the peer to X-Forwarded-For, if it is configured to use
// the remote address. Envoy escapes nothing: a client that sends a quote in X-Forwarded-For or in
// the path may have its line misread.
type envoyParser struct{ time timeParser }

var (
	errEnvoyTime    = &lack{0, "want a time like [2015-05-17T10:05:03.123Z], 1970 to 2261"}
	errEnvoyRequest = &lack{1, "want a quoted request after the time"}
	errEnvoyStatus  = &lack{2, "want a status of one to three digits after the request"}
	errEnvoySize    = &lack{3, "want a size in bytes in the third field after the status"}
	errEnvoyHeaders = &lack{4, "want X-Forwarded-For and four more fields in quotes at the end"}
)

// The marks of fields in quotes.
var (
	spaceQuote    = []byte(" \"")
	endOfQuoted   = []byte("\" ")
	betweenQuoted = []byte("\" \"")
)

func (p *envoyParser) parse(line []byte, rec *Record) (Format, error) {
	time, rest, _ := bytes.Cut(line, endOfTime)
	if len(time) == 0 || time[0] != '[' {
		return Undetected, errEnvoyTime
	}
	var ok bool
	if rec.Time, ok = p.time.rfc3339(time[1:]); !ok {
		return Undetected, errEnvoyTime
	}
	request, rest, ok := bytes.Cut(rest, endOfQuoted)
	if !ok {
		return Undetected, errEnvoyRequest
	}
	rec.setTarget(splitDashed(request))
	status, rest := cutWord(rest)
	if len(status) == 0 || len(status) > 3 || parseDigits(status) < 0 {
		return Undetected, errEnvoyStatus
	}
	size, rest, _ := cutField(skipFields(rest, 2))
	if !rec.setSize(size) {
		return Undetected, errEnvoySize
	}
	if !rec.setEnvoyHeaders(skipFields(rest, 2)) {
		return Undetected, errEnvoyHeaders
	}
	return Envoy, nil
}

// setEnvoyHeaders sets the peer and the host from the five fields in quotes. It reads the host
// from the right, because a client chooses the fields before it.
func (rec *Record) setEnvoyHeaders(b []byte) bool {
	b, ok := bytes.CutPrefix(b, spaceQuote)
	forwarded, rest, _ := bytes.Cut(b, betweenQuoted)
	rest, _, _ = cutLastQuoted(rest)
	rest, host, _ := cutLastQuoted(rest)
	_, _, hasAgent := cutLastQuoted(rest)
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
