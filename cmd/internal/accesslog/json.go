package accesslog

import (
	"bytes"
	"encoding/json"
)

// jsonParser parses JSON lines. One pass over a line collects the raw values of all paths of
// the schema.
type jsonParser struct {
	fields
	scan    scanner
	guesses guesses
}

// jsonCandidates are the fields of these logs, and of logfmt:
//
//   - Caddy: https://caddyserver.com/docs/caddyfile/directives/log
//   - nginx: https://nginx.org/en/docs/http/ngx_http_log_module.html
//   - Traefik: https://doc.traefik.io/traefik/observability/access-logs/
//   - Cloudflare:
//     https://developers.cloudflare.com/logs/logpush/logpush-job/datasets/zone/http_requests/
//   - Istio: https://istio.io/latest/docs/tasks/observability/logs/access-log/
//   - Envoy Gateway: https://gateway.envoyproxy.io/docs/tasks/observability/proxy-accesslog/
//   - Google Cloud: https://cloud.google.com/logging/docs/reference/v2/rest/v2/LogEntry#HttpRequest
//   - AWS API Gateway:
//     docs.aws.amazon.com/apigateway/latest/developerguide/set-up-logging.html
//   - AWS WAF: docs.aws.amazon.com/waf/latest/developerguide/logging-fields.html
//   - Kong: https://developer.konghq.com/plugins/file-log/
//   - Heroku: https://devcenter.heroku.com/articles/http-routing#heroku-router-log-format
//   - Elastic Common Schema: https://www.elastic.co/docs/reference/ecs
//   - Azure Front Door: https://learn.microsoft.com/azure/frontdoor/standard-premium/how-to-logs
//   - Azure Application Gateway:
//     https://learn.microsoft.com/azure/application-gateway/application-gateway-diagnostics
//   - pino-http and Fastify: https://github.com/pinojs/pino-http
//   - Zeek: https://docs.zeek.org/en/master/logs/http.html
//
// Traefik's StartUTC comes before its time, which has whole seconds. The names of a peer come
// before the names of a client that a server may have found in a header, and before the names of
// X-Forwarded-For, which serve a log without a peer. Traefik's ClientHost is X-Forwarded-For if
// the request has it. Kong's request.url has the host, and its request.uri has not. "request" is a
// whole request line in nginx and an object in Caddy.
var jsonCandidates = candidates{
	fieldTime: {"StartUTC", "StartLocal", "EdgeStartTimestamp", "EdgeEndTimestamp", "ts", "time",
		"timestamp", "@timestamp", "time_iso8601", "msec", "time_local", "start_time", "started_at",
		"requestTime", "timeStamp"},
	fieldPeer: {"request.remote_ip", "request.remote_addr", "remote_ip", "remote_addr",
		"ClientAddr", "ClientIP", "downstream_remote_address", "httpRequest.remoteIp",
		"httpRequest.clientIp", "properties.socketIp", "properties.clientIp", "properties.clientIP",
		"req.remoteAddress", "id.orig_h", "source.ip", "request.client_ip",
		"client_ip", "client.ip", "ip",
		"ClientHost", "http_x_forwarded_for", "x_forwarded_for", "x-forwarded-for", "fwd"},
	fieldForwarded: {"request.headers.X-Forwarded-For", "request.headers.x-forwarded-for",
		"http_x_forwarded_for", "x_forwarded_for", "x-forwarded-for", "request_X-Forwarded-For",
		"ClientHost", "RequestHeaders.x-forwarded-for", "req.headers.x-forwarded-for"},
	fieldUser: {"user_id", "remote_user", "user", "ClientUsername"},
	fieldHost: {"request.host", "host", "http_host", "server_name",
		"RequestHost", "ClientRequestHost", "authority", ":authority", "url.domain", "req.headers.host",
		"properties.hostName", "properties.host"},
	fieldURI: {"request.url", "request.uri", "request_uri", "uri", "request", "path", "RequestPath",
		"ClientRequestURI", "httpRequest.requestUrl", "httpRequest.uri", "x-envoy-origin-path",
		"url", "url.original", "url.path", "req.url", "properties.requestUri"},
	fieldSize: {"size", "body_bytes_sent", "bytes_sent", "bytes", "bytes_out",
		"DownstreamContentSize", "EdgeResponseBytes", "httpRequest.responseSize", "response.size",
		"responseLength", "http.response.body.bytes", "res.headers.content-length",
		"properties.responseBytes", "properties.sentBytes", "response_body_len"},
	fieldAgent: {"request.headers.User-Agent", "request.headers.user-agent", "http_user_agent",
		"user_agent", "user_agent.original", "userAgent", "user-agent", "agent", "request_User-Agent",
		"ClientRequestUserAgent", "httpRequest.userAgent", "req.headers.user-agent",
		"properties.userAgent"},
}

var (
	errObject = &lack{0, "want one JSON object a line"}
	errJSON   = &lack{2, "want one JSON object a line"}
)

// newJSONParser returns a parser for the fields of a schema.
func newJSONParser(s Schema) *jsonParser {
	p := &jsonParser{fields: newFields(s, jsonCandidates, unquote)}
	p.scan.root = &node{}
	for slot, path := range p.paths {
		isList := slot >= p.first[fieldPeer] && slot < p.first[fieldUser]
		p.scan.root.add(path, slot, isList)
	}
	return p
}

func (p *jsonParser) parse(line []byte, rec *Record) (Format, error) {
	if !isObject(line) {
		return Undetected, errObject
	}
	clear(p.values)
	if !p.scan.line(line, p.values) {
		return Undetected, errJSON
	}
	err := p.fillRequest(rec)
	if (err != nil || len(rec.Peer) == 0) && p.guesses.looked < mostGuesses {
		p.guesses.look(line, func(field int) bool { return p.text(field) == nil })
	}
	return JSON, err
}

// isObject reports whether a line can only be JSON.
func isObject(line []byte) bool {
	line = bytes.TrimLeft(line, " \t")
	return len(line) > 0 && line[0] == '{'
}

// unquote returns the text of a raw value. It allocates only for an array, and for a text with an
// escape, which is rare.
func unquote(raw []byte) []byte {
	if len(raw) > 0 && raw[0] == '[' {
		return joinTexts(raw)
	}
	return unquoteText(raw)
}

// unquoteText is unquote for a value that is not an array.
func unquoteText(raw []byte) []byte {
	if len(raw) < 2 || raw[0] != '"' {
		return raw
	}
	text := raw[1 : len(raw)-1]
	if bytes.IndexByte(text, '\\') < 0 {
		return text
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return text // with the escapes of nginx, such as \x22
	}
	return []byte(s)
}

// joinTexts joins the strings of a raw array with commas, as the lines of a header field are
// joined. A string with an escape is not an address, so only the strings after it count.
func joinTexts(raw []byte) []byte {
	s := scanner{data: raw, pos: len("[")}
	list := make([]byte, 0, len(raw))
	for more := true; more; more = s.consume(',') {
		text, ok := s.text()
		if !ok || bytes.IndexByte(text, '\\') >= 0 {
			list = list[:0]
			continue
		}
		list = append(append(list, text...), ',')
	}
	return bytes.TrimSuffix(list, []byte{','})
}
