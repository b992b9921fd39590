package accesslog

import (
	"bytes"
	"net/netip"

	"github.com/seed-181794aa/ratelimit/internal/clientaddr"
)

// clfParser parses lines of Common and Combined Log Format:
//
//	peer ident user [time] "request" status size ["referer" "agent" ["forwarded"]]
//
// setOrigin describes the variants before the time. A line may have further fields, and may
// be cut off after the size, because its request happened.
type clfParser struct{ time timeParser }

// endOfTime is the server's where it is first in a line, whatever a user name contains: servers
// escape the quotes that clients send.
var endOfTime = []byte("] \"")

var (
	errOrigin = &lack{0, "want `client ident user [time] \"request\" status size`"}
	errTime   = &lack{3, "want a time like [17/May/2015:10:05:03 +0000], 1970 to 2261"}
	errClient = &lack{3, "want `client ident user` before the time, with an address or the name of" +
		" a host as the client"}
	errRequest = &lack{4, "want a quoted request after the time"}
	errStatus  = &lack{5, "want a status of three digits, or -, after the request"}
	errSize    = &lack{6, "want a size in bytes, or -, after the status"}
)

func (p *clfParser) parse(line []byte, rec *Record) error {
	rest, err := p.parseOrigin(line, rec)
	if err != nil {
		return err
	}
	request, rest, ok := cutQuoted(rest)
	if !ok {
		return errRequest
	}
	if len(emptyIfDash(request)) == 0 { // of Apache and nginx, with 408 or 400
		return errConnection
	}
	rec.setRequest(request)
	status, rest, ok := cutField(rest)
	if !ok || !isStatus(status) {
		return errStatus
	}
	rec.Status = emptyIfDash(status)
	size, rest, ok := cutField(rest)
	if !ok || !isSize(size) {
		return errSize
	}
	rec.combined = len(rest) > 0
	var referer []byte
	for _, field := range [...]*[]byte{&referer, &rec.Agent, &rec.Forwarded} {
		*field, rest, _ = cutQuoted(rest)
		*field = emptyIfDash(*field)
	}
	return nil
}

// parseOrigin parses the fields before the request, and returns the rest of the line.
func (p *clfParser) parseOrigin(line []byte, rec *Record) (rest []byte, err error) {
	end := bytes.Index(line, endOfTime)
	if end < 0 {
		return nil, errOrigin
	}
	open, ok := end-len("[17/May/2015:10:05:03 +0000"), false
	if open >= 1 && line[open] == '[' { // nearly always
		rec.Time, ok = p.time.clf(line[open+1 : end])
	}
	if !ok { // perhaps $time_iso8601 in a log_format of nginx
		open = bytes.LastIndexByte(line[:end], '[')
		rec.Time, ok = parseTime(line[open+1:end], isoLayouts...)
	}
	switch {
	case open < 1 || line[open-1] != ' ':
		return nil, errOrigin
	case !ok:
		return nil, errTime
	case !rec.setOrigin(line[:open-1]):
		return nil, errClient
	}
	return line[end+len("]"):], nil
}

// ephemeral is the first port that clients have in most systems.
const ephemeral = 1 << 15

// setOrigin sets the peer, the user and perhaps the host from the fields before the time:
//
//	peer ident user                     Common Log Format
//	host peer ident user                with the virtual host, or host:port, before it
//	client, proxy, proxy ident user     X-Forwarded-For instead of the peer, with or without
//	                                    the host before it
//
// A user is any text that a client sends, with spaces. The ident is nearly always "-", always after
// the name of a host, and never an address: if the second field is an address or a list, or a "-"
// follows it, which is then the ident, the first one is the host. A host that is an address has the
// port of a server. Any other form is refused. To take a host, a proxy or a word of a prefix for
// the peer would put many clients into one bucket.
func (rec *Record) setOrigin(b []byte) bool {
	peer, rest := cutList(b)
	ident, user, ok := bytes.Cut(rest, space)
	if string(ident) != "-" &&
		(isAddr(ident) || isList(ident) || bytes.HasPrefix(user, []byte("- "))) {
		server, err := netip.ParseAddrPort(string(peer))
		if isList(peer) || isAddr(peer) && (err != nil || server.Port() >= ephemeral) {
			return false
		}
		host := withoutPort(bytes.Trim(peer, `"`))
		if !isHostName(host) && !isAddr(host) {
			return false // it is a prefix
		}
		rec.Host = emptyIfDash(host)
		peer, rest = cutList(rest)
		ident, user, ok = bytes.Cut(rest, space)
		ok = ok && !isAddr(ident)
	}
	rec.Peer, rec.User = emptyIfDash(peer), emptyIfDash(user)
	return ok && len(peer) > 0 && peer[0] != ',' && len(user) > 0 && isClient(peer) &&
		(string(ident) == "-" || len(ident) > 0 && (isAddr(peer) || isList(peer)))
}

// cutList cuts off the first field. A field that ends with a comma continues in the next
// one.
func cutList(b []byte) (list, rest []byte) {
	for end := 0; ; end++ {
		n := bytes.IndexByte(b[end:], ' ')
		if n < 0 {
			return b, nil
		}
		if end += n; end == 0 || b[end-1] != ',' {
			return b[:end], b[end+1:]
		}
	}
}

func isList(b []byte) bool { return bytes.IndexByte(b, ',') >= 0 }

// isAddr reports whether b is an IP address, with or without a port.
func isAddr(b []byte) bool {
	_, ok := clientaddr.Parse(string(b))
	return ok
}
