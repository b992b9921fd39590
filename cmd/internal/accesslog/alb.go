package accesslog

// albParser parses the access log of an AWS Application Load Balancer
// (docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-access-logs.html):
//
//	type time elb client:port target:port time time time status status received sent "request" …
//
// An IPv6 address has no brackets. The URI of a request is absolute, with a port. A part that an
// invalid request lacks is a dash: "- http://www.example.com:80- -". A Classic Load Balancer writes
// the same without a type
// (docs.aws.amazon.com/elasticloadbalancing/latest/classic/access-log-collection.html), and also
// lines for TCP connections, which have no status and no request.
type albParser struct{ time timeParser }

var (
	errALBOrigin  = &lack{0, "want `type time elb client:port target:port` and so on"}
	errALBTime    = &lack{1, "want a time like 2015-05-17T10:05:03.123456Z after the type"}
	errALBClient  = &lack{2, "want a client:port after the name of the load balancer"}
	errALBStatus  = &lack{3, "want a status of three digits, or -, in the fifth field after it"}
	errALBSize    = &lack{4, "want a size in bytes in the third field after the status"}
	errALBRequest = &lack{5, "want a quoted request after the sizes"}
)

func (p *albParser) parse(line []byte, rec *Record) (Format, error) {
	format := ELB
	time, rest := cutWord(line)
	if isALBType(time) {
		format = ALB
		time, rest, _ = cutField(rest)
	}
	var ok bool
	if rec.Time, ok = p.time.rfc3339(time); !ok {
		if format == ELB {
			return Undetected, errALBOrigin
		}
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
	request, rest, ok := cutQuoted(rest)
	if !ok {
		return Undetected, errALBRequest
	}
	agent, _, _ := cutQuoted(rest)
	rec.agent = emptyIfDash(agent)
	if string(status) == "-" && isDashes(request) {
		return Undetected, errConnection
	}
	rec.setTarget(splitDashed(request))
	rec.Host = withoutPort(rec.Host)
	return format, nil
}

// isALBType reports whether b is a type of request.
func isALBType(b []byte) bool {
	switch string(b) {
	case "http", "https", "h2", "grpcs", "ws", "wss":
		return true
	}
	return false
}
