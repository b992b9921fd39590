package accesslog

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The fields of a Record, in the order of fieldNames. The extra fields follow them.
const (
	fieldDate = iota
	fieldTime
	fieldPeer
	fieldForwarded
	fieldUser
	fieldHost
	fieldMethod
	fieldURI
	fieldQuery
	fieldStatus
	fieldAgent
	fieldLogger // of Caddy; it is not in fieldNames, as what tells the lines of pino apart
	fieldPino
	fieldKind // of the line
	numFields
)

var fieldNames = [...]string{"date", "time", "ip", "forwarded", "user", "host", "method",
	"uri", "query", "status", "agent"}

// fields are the texts of a line in a format that names its fields. A slot holds the text of one
// path. A field has several candidate paths, and the first one found counts.
type fields struct {
	time   timeParser
	oldest int64            // the least time of a number, in nanoseconds since 1970
	slots  map[string][]int // by path; for the beginning of a path, none
	values [][]byte         // by slot
	first  []int            // the first slot of each field, and the end of the last
	named  []int            // fields of a request that the schema names, whatever their values are
}

// year2000 is its beginning. A number that is less is the time that something took, unless the
// schema names the field.
const year2000 = 946_684_800 * int64(time.Second)

// newFields returns the fields of a schema, with the usual candidates where it has no name. If only
// is not nil, other usual names are left out.
func newFields(s Schema, only []string) fields {
	f := fields{slots: make(map[string][]int), oldest: year2000}
	if _, ok := s.Names["time"]; ok {
		f.oldest = 0
	}
	n := 0
	add := func(paths ...string) {
		f.first = append(f.first, n)
		for _, path := range paths {
			for i := range path {
				if path[i] == '.' {
					f.slots[path[:i]] = append(f.slots[path[:i]], nil...)
				}
			}
			f.slots[path] = append(f.slots[path], n)
			n++
		}
	}
	for field, paths := range usual {
		if field < len(fieldNames) && s.Names[fieldNames[field]] != "" {
			paths = []string{s.Names[fieldNames[field]]}
			if field == fieldMethod || field == fieldURI || field == fieldStatus {
				f.named = append(f.named, field)
			}
		}
		if only != nil {
			paths = slices.DeleteFunc(slices.Clone(paths), func(path string) bool {
				return !slices.Contains(only, path)
			})
		}
		add(paths...)
	}
	for _, path := range s.Extra {
		add(path)
	}
	f.first = append(f.first, n)
	f.values = make([][]byte, n)
	return f
}

func (f *fields) set(slots []int, text []byte) {
	for _, slot := range slots {
		f.values[slot] = text
	}
}

// fill fills rec from the texts. Only the time is required.
func (f *fields) fill(rec *Record) error {
	rec.Peer = f.text(fieldPeer)
	rec.Forwarded = f.text(fieldForwarded)
	for _, list := range []*[]byte{&rec.Peer, &rec.Forwarded} {
		if isList(*list) && bytes.ContainsAny(*list, "+%") { // for a space in IIS and CloudFront
			plain := bytes.ReplaceAll(*list, []byte{'+'}, space)
			*list = bytes.ReplaceAll(plain, []byte("%20"), space)
		}
	}
	rec.User = f.text(fieldUser)
	for _, text := range f.texts(fieldURI) {
		if rec.setTarget(emptyIfDash(text)); rec.Path != nil || rec.Host != nil {
			break
		}
	}
	rec.Method = First(rec.Method, f.text(fieldMethod))
	if len(rec.Query) == 0 {
		rec.Query = bytes.TrimPrefix(f.text(fieldQuery), []byte{'?'}) // of ASP.NET Core
	}
	rec.Host = First(f.text(fieldHost), rec.Host)
	if status := f.text(fieldStatus); isStatus(status) {
		rec.Status = status
	}
	rec.Agent = f.text(fieldAgent)
	for i := range rec.Fields {
		rec.Fields[i] = f.text(numFields + i)
	}
	return f.fillTime(rec)
}

// fillTime sets the time from the first candidate that is one.
func (f *fields) fillTime(rec *Record) (err error) {
	day := f.text(fieldDate)
	err = errNoTime
	for _, text := range f.texts(fieldTime) {
		if text = emptyIfDash(text); len(text) == 0 {
			continue
		}
		if day != nil && len(text) > 2 && text[2] == ':' {
			text = slices.Concat(day, space, text)
		}
		var ok bool
		rec.Time, rec.NoZone, ok = f.time.any(text)
		if ok && (rec.Time >= f.oldest || bytes.IndexByte(text, ':') >= 0) { // a number has no colon
			return nil
		}
		if errors.Is(err, errNoTime) {
			err = fmt.Errorf("time %.60q: %w", text, errBadTime)
		}
	}
	return err
}

// besides are kinds of lines beside the one of the request, by their fields: earlier ones in the
// audit log of Kubernetes, in Azure those of rules, of probes and of one cache that asks another,
// and in Cloudflare what a Worker asks for.
var besides = map[string][]string{
	"stage": {"RequestReceived", "ResponseStarted"},
	"category": {"FrontDoorHealthProbeLog", "FrontDoorWebApplicationFirewallLog",
		"FrontdoorWebApplicationFirewallLog", "ApplicationGatewayFirewallLog"},
	"properties.isReceivedFromClient": {"false"}, "WorkerSubrequest": {"true"},
}

// fillRequest is fill for a format in which programs write all kinds of messages. A request has a
// method, a path or a status; a message may have an address or a host, too. With pino, several
// lines have parts of a request: the one with req and res counts, and in Fastify the first.
func (f *fields) fillRequest(rec *Record) error {
	err := f.fill(rec)
	for i, text := range f.texts(fieldKind) {
		if text != nil && slices.Contains(besides[usual[fieldKind][i]], string(text)) {
			return ErrMessage
		}
	}
	isSet := func(slot int) bool { return f.values[slot] != nil }
	has := func(path string) bool { return slices.ContainsFunc(f.slots[path], isSet) }
	isRequest := len(rec.Path) > 0 || isMethod(rec.Method)
	switch {
	case !has("req.url"):
		isRequest = isRequest || len(rec.Status) > 0 && !has("res.statusCode") && !has("res.status")
	case has("responseTime"): // at the end of a request, which has no status if it was aborted
	case len(rec.Status) == 0:
		isRequest = string(f.text(fieldPino)) == "incoming request"
	default:
		isRequest = !has("reqId") || !has("err.type") // both are in a message of Fastify
	}
	isNamed := func(field int) bool { return f.text(field) != nil }
	if !isRequest && !slices.ContainsFunc(f.named, isNamed) &&
		(err == nil || errors.Is(err, errNoTime)) {
		return ErrMessage
	}
	return err
}

// isMethod reports whether b is the name of a method, as in HTTP and WebDAV.
func isMethod(b []byte) bool {
	return len(b) > 0 && consistsOf(b, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-")
}

func (f *fields) texts(field int) [][]byte { return f.values[f.first[field]:f.first[field+1]] }

func (f *fields) text(field int) []byte { return First(f.texts(field)...) }

// First returns the first text that is there: Caddy and others write REDACTED for credentials.
func First(texts ...[]byte) []byte {
	for _, text := range texts {
		if text = emptyIfDash(text); len(text) > 0 && string(text) != "REDACTED" {
			return text
		}
	}
	return nil
}

// setTarget sets the parts of a URI, or of a whole request line. A word without a slash is what a
// server logs of something else than HTTP.
func (rec *Record) setTarget(b []byte) {
	switch {
	case bytes.IndexByte(b, '/') < 0 && string(b) != "*":
	case b[0] != '/' && bytes.IndexByte(b, ' ') >= 0:
		rec.setRequest(b)
	default:
		rec.setURI(b)
	}
}

// ErrMessage is the error of a line that is not a request and not malformed: the message of a
// program, or a directive.
var ErrMessage error = &lack{5, "want a request, with a method, a path or a status"}

var (
	errNoTime  = &lack{6, "no field with a time: " + errBadTime.want}
	errBadTime = &lack{7, "want epoch seconds or milliseconds, RFC 3339," +
		" or 17/May/2015:10:05:03 +0000"}
)

// Schema describes what to read of a log.
type Schema struct {
	// Names maps "time", "ip" (the peer), "forwarded", "user", "host", "method", "uri", "query",
	// "status" and "agent" to the field that holds it, in the formats that name their fields: JSON,
	// logfmt, W3C and LogFormat. Without a name, the usual fields hold it. In JSON, a path such as
	// "request.headers.X-Api-Key" names a nested field. An array stands for its first element, or for
	// its list of addresses. With "[*]" behind the path, its texts have newlines between them.
	Names map[string]string
	// Extra are the fields for Record.Fields.
	Extra []string
	// LogFormat is the log_format of nginx that wrote the log. If it is empty, the format
	// is detected.
	LogFormat string
}

// Validate returns an error if Names has an unknown name or an empty field, or if LogFormat
// has a mistake.
func (s Schema) Validate() error {
	for field, name := range s.Names {
		if !slices.Contains(fieldNames[:], field) || name == "" {
			return fmt.Errorf("%s=%s: want NAME=FIELD with NAME one of %s",
				field, name, strings.Join(fieldNames[:], ", "))
		}
	}
	_, err := newDetector(s)
	return err
}

// usual has the paths that may hold each field of a Record, the best one first. They are from
// Caddy, nginx, Traefik, Cloudflare, Istio, Envoy Gateway, Google Cloud, AWS API Gateway and WAF,
// Kong, APISIX, Heroku, the Elastic Common Schema, Azure Front Door and Application Gateway,
// pino-http, Zeek, IIS and CloudFront, in JSON, logfmt, W3C or a log_format.
//
// Traefik's StartUTC comes before its time, which has whole seconds. The names of a peer come
// before the names of a client that a server may have found in a header, and before the names of
// X-Forwarded-For, which serve a log without a peer. Traefik's ClientHost is X-Forwarded-For if the
// request has it. $proxy_add_x_forwarded_for is X-Forwarded-For with the peer at its end. Kong's
// request.url has the host, and its request.uri has not. "request" is a whole request line in nginx
// and an object in Caddy.
var usual = [numFields][]string{
	fieldDate: {"date"},
	fieldTime: {"StartUTC", "StartLocal", "EdgeStartTimestamp", "EdgeEndTimestamp", "ts", "time",
		"timestamp", "@timestamp", "msec", "time_iso8601", "time_local", "start_time", "started_at",
		"requestTime", "timeStamp"},
	fieldPeer: {"request.remote_ip", "request.remote_addr", "remote_ip", "remote_addr", "c-ip",
		"ClientAddr", "ClientIP", "downstream_remote_address", "httpRequest.remoteIp",
		"httpRequest.clientIp", "properties.socketIp", "properties.clientIp", "properties.clientIP",
		"req.remoteAddress", "id.orig_h", "source.ip", "request.client_ip",
		"client_ip", "client.ip", "ip", "ClientHost", "proxy_add_x_forwarded_for",
		"http_x_forwarded_for", "x_forwarded_for", "x-forwarded-for", "fwd"},
	fieldForwarded: {"request.headers.X-Forwarded-For", "request.headers.x-forwarded-for",
		"http_x_forwarded_for", "x_forwarded_for", "x-forwarded-for", "X-Forwarded-For",
		"cs(X-Forwarded-For)", "request_X-Forwarded-For", "ClientHost",
		"RequestHeaders.x-forwarded-for", "req.headers.x-forwarded-for"},
	fieldUser: {"user_id", "remote_user", "user", "ClientUsername", "cs-username"},
	fieldHost: {"request.host", "http_host", "host", "server_name", "x-host-header", "cs-host",
		"cs(Host)", "RequestHost", "ClientRequestHost", "authority", ":authority", "url.domain",
		"req.headers.host", "properties.hostName", "properties.host"},
	fieldMethod: {"request.method", "request_method", "method", "RequestMethod", "ClientRequestMethod",
		"httpRequest.requestMethod", "httpRequest.httpMethod", "httpMethod", "http.request.method",
		"req.method", "properties.httpMethod", "cs-method"},
	fieldURI: {"request.url", "request.uri", "request", "request_uri", "uri", "path", "RequestPath",
		"ClientRequestURI", "httpRequest.requestUrl", "httpRequest.uri", "x-envoy-origin-path",
		"url", "url.original", "url.path", "req.url", "properties.requestUri", "cs-uri-stem", "cs-uri"},
	fieldQuery: {"args", "query_string", "httpRequest.args", "properties.requestQuery",
		"cs-uri-query"},
	fieldStatus: {"status", "status_code", "statusCode", "response.status", "DownstreamStatus",
		"EdgeResponseStatus", "httpRequest.status", "http.response.status_code", "res.statusCode",
		"res.status", "response_code", "responseCode", "properties.httpStatus",
		"properties.httpStatusCode", "sc-status"},
	fieldAgent: {"request.headers.User-Agent", "request.headers.user-agent", "http_user_agent",
		"user_agent", "user_agent.original", "userAgent", "user-agent", "agent", "request_User-Agent",
		"ClientRequestUserAgent", "httpRequest.userAgent", "req.headers.user-agent",
		"properties.userAgent", "cs(User-Agent)"},
	fieldLogger: {"logger"},
	fieldPino:   {"msg", "message", "reqId", "err.type", "responseTime"},
	fieldKind:   {"properties.isReceivedFromClient", "category", "stage", "WorkerSubrequest"},
}
