package accesslog

// albParser parses the access log of an AWS Application Load Balancer
// (docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-access-logs.html):
//
//	type time elb client:port target:port time time time status status received sent "request" …
//
// An IPv6 address has no brackets. The URI of a request is absolute, with a port. A part that an
// invalid request lacks is a dash: "- http://www.example.com:80- -".
type albParser struct{ time timeParser }

var (
	errALBOrigin  = &lack{0, "want `type time elb client:port target:port` and so on"}
	errALBTime    = &lack{1, "want a time like 2015-05-17T10:05:03.123456Z after the type"}
	errALBClient  = &lack{2, "want a client:port after the name of the load balancer"}
	errALBStatus  = &lack{3, "want a status of three digits, or -, in the ninth field"}
	errALBSize    = &lack{4, "want a size in bytes in the twelfth field"}
	errALBRequest = &lack{5, "want a quoted request after the sizes"}
)

func (p *albParser) parse(line []byte, rec *Record) (Format, error) {
	kind, rest := cutWord(line)
	if !isALBType(kind) {
		return Undetected, errALBOrigin
	}
	time, rest, _ := cutField(rest)
	var ok bool
	if rec.Time, ok = p.time.rfc3339(time); !ok {
		return Undetected, errALBTime
	}
	client, rest, _ := cutField(skipFields(rest, 1))
	if len(client) == 0 {
		return Undetected, errALBClient
	}
	rec.Peer = withoutPort(client)
	status, rest, _ := cutField(skipFields(rest, 4))
	if !isStatus(status) {
		return Undetected, errALBStatus
	}
	size, rest, _ := cutField(skipFields(rest, 2))
	if !rec.setSize(size) {
		return Undetected, errALBSize
	}
	request, _, ok := cutQuoted(rest)
	if !ok {
		return Undetected, errALBRequest
	}
	rec.setTarget(splitDashed(request))
	rec.Host = withoutPort(rec.Host)
	return ALB, nil
}

// isALBType reports whether b is a type of request.
func isALBType(b []byte) bool {
	switch string(b) {
	case "http", "https", "h2", "grpcs", "ws", "wss":
		return true
	}
	return false
}
