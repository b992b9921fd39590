package accesslog

import "bytes"

// knownFormats are log formats in the notation of nginx, by the programs that write them:
//
//   - Amazon S3: docs.aws.amazon.com/AmazonS3/latest/userguide/LogFormat.html
//   - nginx-proxy-manager: docker/rootfs/etc/nginx/conf.d/include/log-proxy.conf in its repository
//   - Apache APISIX: nginx_config.http.access_log_format in its config.yaml
var knownFormats = []struct {
	format Format
	text   string
}{
	{S3, `$owner $bucket [$time_local] $remote_addr $remote_user $request_id $operation $key` +
		` "$request" $status $error $bytes_sent`},
	{NPM, `[$time_local] $cache $upstream_status $status - $request_method $scheme $host` +
		` "$request_uri" [Client $remote_addr] [Length $body_bytes_sent] `},
	{NPM, `[$time_local] $status - $request_method $scheme $host "$request_uri"` +
		` [Client $remote_addr] [Length $body_bytes_sent] `},
	{APISIX, `$remote_addr - $remote_user [$time_local] $http_host "$request" $status` +
		` $body_bytes_sent $request_time "`},
}

// newKnownParsers returns the parsers of the known formats.
func newKnownParsers(s Schema) (all []namedParser, err error) {
	for _, known := range knownFormats {
		s.LogFormat, s.Names = known.text, nil
		p, err := newFormatParser(s)
		if err != nil {
			return nil, err
		}
		p.format = known.format
		all = append(all, namedParser{p, string(known.format)})
	}
	return all, nil
}

// uwsgiParser parses the request lines of uWSGI
// (https://uwsgi-docs.readthedocs.io/en/latest/LogFormat.html). The time is the start,
// without a zone. It counts as UTC:
//
//	[pid: 5501|app: 0|req: 2/6] peer (user) {40 vars in 625 bytes} [Sun May 17 10:05:03 2015]
//	GET /a?b => generated 17 bytes in 1 msecs (HTTP/1.1 200) …
type uwsgiParser struct{ time timeParser }

var errUWSGI = &lack{1, "want `[pid: …] client (user) {…} [time] request => generated … bytes`"}

func (p *uwsgiParser) parse(line []byte, rec *Record) (Format, error) {
	rest, ok := bytes.CutPrefix(line, []byte("[pid: "))
	if !ok {
		return Undetected, errNotKnown
	}
	_, rest, _ = bytes.Cut(rest, []byte("] "))
	peer, rest, _ := bytes.Cut(rest, []byte(" ("))
	user, rest, _ := bytes.Cut(rest, []byte(") {"))
	_, rest, _ = bytes.Cut(rest, []byte("} ["))
	time, rest, _ := bytes.Cut(rest, []byte("] "))
	request, rest, ok := bytes.Cut(rest, []byte(" => generated "))
	size, _ := cutWord(rest)
	if !ok || !isClient(peer) || !rec.setSize(size) {
		return Undetected, errUWSGI
	}
	if rec.Time, ok = p.time.ansic(time); !ok {
		return Undetected, errUWSGI
	}
	rec.Peer, rec.User = peer, user
	rec.setTarget(splitRequest(request))
	return UWSGI, nil
}

// squidParser parses the native log of Squid (https://wiki.squid-cache.org/Features/LogFormat). The
// time is the end of the request:
//
//	1431857103.123     52 peer TCP_MISS/200 17 GET http://h.example/a user HIER_DIRECT/10.0.0.1 …
type squidParser struct{}

var errSquid = &lack{1, "want `time elapsed client code/status size method URL user …`"}

func (p *squidParser) parse(line []byte, rec *Record) (Format, error) {
	var fields [8][]byte
	rest := line
	for i := range fields {
		rest = bytes.TrimLeft(rest, " ")
		fields[i], rest = cutWord(rest)
	}
	time, code := fields[0], fields[3]
	if countDigits(time) < len("1431857103") || countDigits(time) == len(time) {
		return Undetected, errNotKnown
	}
	slash := bytes.IndexByte(code, '/')
	ok := slash > 0 && parseDigits(code[slash+1:]) >= 0 && parseDigits(fields[1]) >= 0 &&
		isClient(fields[2]) && len(fields[7]) > 0 && rec.setSize(fields[4])
	if ok {
		rec.Time, ok = epoch(time)
	}
	if !ok {
		return Undetected, errSquid
	}
	rec.Peer, rec.User = emptyIfDash(fields[2]), emptyIfDash(fields[7])
	rec.setTarget(splitURI(fields[6]))
	rec.Method = fields[5]
	return Squid, nil
}

// ginParser parses the default log of Gin (https://pkg.go.dev/github.com/gin-gonic/gin#Logger). The
// time is the end of the request, without a zone. It counts as UTC:
//
//	[GIN] 2015/05/17 - 10:05:03 | 200 |     123.4µs |       192.0.2.7 | GET      "/a?b"
type ginParser struct{ time timeParser }

var errGin = &lack{1, "want `[GIN] date - time | status | latency | client | method \"path\"`"}

func (p *ginParser) parse(line []byte, rec *Record) (Format, error) {
	rest, ok := bytes.CutPrefix(line, []byte("[GIN] "))
	if !ok {
		return Undetected, errNotKnown
	}
	var fields [4][]byte
	for i := range fields {
		fields[i], rest, _ = bytes.Cut(rest, []byte("|"))
		fields[i] = bytes.TrimSpace(fields[i])
	}
	date, clock, _ := bytes.Cut(fields[0], []byte(" - "))
	method, path := cutWord(bytes.TrimSpace(rest))
	path = bytes.TrimSpace(path)
	if len(path) < 2 || !isClient(fields[3]) || !isStatus(fields[1]) {
		return Undetected, errGin
	}
	if rec.Time, ok = p.time.slashed(date, clock); !ok {
		return Undetected, errGin
	}
	rec.Peer = fields[3]
	rec.setTarget(splitURI(bytes.Trim(path, `"`)))
	rec.Method = method
	return Gin, nil
}

// errNotKnown is the error of a line that a program has not written.
var errNotKnown = &lack{0, "want another beginning"}
