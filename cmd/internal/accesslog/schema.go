package accesslog

import (
	"fmt"
	"slices"
	"strings"
)

// Schema describes what to read of a log.
type Schema struct {
	// Names maps "time", "ip" (the peer), "forwarded", "user", "host", "method", "uri", "query",
	// "status", "size" and "agent" to the field that holds it, in the formats that name their fields:
	// JSON, logfmt, W3C and LogFormat.
	// Without a name, the usual fields hold it. In JSON, a path such as "request.headers.X-Api-Key"
	// names a nested field. An array stands for its first element, or for its list of addresses.
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

// usual are the fields of Caddy, nginx, Traefik, Cloudflare, Istio, Envoy Gateway, Google Cloud,
// AWS API Gateway and WAF, Kong, APISIX, Heroku, the Elastic Common Schema, Azure Front Door and
// Application Gateway, pino-http, Zeek, IIS and CloudFront, in JSON, logfmt, W3C or a log_format.
//
// Traefik's StartUTC comes before its time, which has whole seconds. The names of a peer come
// before the names of a client that a server may have found in a header, and before the names of
// X-Forwarded-For, which serve a log without a peer. Traefik's ClientHost is X-Forwarded-For if the
// request has it. $proxy_add_x_forwarded_for is X-Forwarded-For with the peer at its end. Kong's
// request.url has the host, and its request.uri has not. "request" is a whole request line in nginx
// and an object in Caddy.
var usual = candidates{
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
	fieldQuery: {"args", "query_string", "cs-uri-query"},
	fieldStatus: {"status", "status_code", "statusCode", "response.status", "DownstreamStatus",
		"EdgeResponseStatus", "httpRequest.status", "http.response.status_code", "res.statusCode",
		"response_code", "responseCode", "properties.httpStatus", "properties.httpStatusCode",
		"sc-status"},
	fieldSize: {"size", "body_bytes_sent", "bytes_sent", "bytes", "bytes_out",
		"DownstreamContentSize", "EdgeResponseBytes", "httpRequest.responseSize", "response.size",
		"responseLength", "http.response.body.bytes", "res.headers.content-length",
		"properties.responseBytes", "properties.sentBytes", "response_body_len", "sc-bytes"},
	fieldAgent: {"request.headers.User-Agent", "request.headers.user-agent", "http_user_agent",
		"user_agent", "user_agent.original", "userAgent", "user-agent", "agent", "request_User-Agent",
		"ClientRequestUserAgent", "httpRequest.userAgent", "req.headers.user-agent",
		"properties.userAgent", "cs(User-Agent)"},
	fieldLogger: {"logger"},
}
