// Package accesslog reads the requests out of the logs of web servers, proxies and load
// balancers, plain or packed by gzip, zstd or bzip2.
//
// # Formats
//
// Common Log Format, as Apache writes it, and Combined, which has two more fields and is
// the default of nginx:
//
//	192.0.2.7 - eve [17/May/2015:10:05:03 +0000] "GET /a?b HTTP/1.1" 200 17
//	192.0.2.7 - eve [17/May/2015:10:05:03 +0000] "GET /a?b HTTP/1.1" 200 17 "-" "curl"
//
// A "-" stands for a missing value. In quotes, a backslash escapes the next byte. The
// virtual host may precede the peer, as in Apache's vhost_combined. The peer may be a list,
// as in X-Forwarded-For. A third field in quotes is X-Forwarded-For, as in the "main" format
// of nginx's packages:
//
//	www.example.com:80 192.0.2.7 - eve [17/May/2015:10:05:03 +0000] "GET /a?b HTTP/1.1" …
//	192.0.2.7, 10.0.0.1 - eve [17/May/2015:10:05:03 +0000] "GET /a?b HTTP/1.1" 200 17
//	10.0.0.2 - eve [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 17 "-" "curl" "192.0.2.7"
//
// JSON lines, an object a line. A Schema names the fields that hold the parts of a request.
// The default fields are the usual ones of many servers:
//
//	{"ts":1431857103.2,"request":{"remote_ip":"192.0.2.7","uri":"/a?b"},"size":17}
//	{"time_iso8601":"2015-05-17T10:05:03+00:00","remote_addr":"192.0.2.7", …}
//
// A time has the form of RFC 3339 or of Common Log Format, or is a number of seconds,
// milliseconds, microseconds or nanoseconds since 1970. The size of the number decides the unit.
//
// The comments of the other parsers describe their formats: logfmt, W3C Extended Log File Format
// (IIS, CloudFront) and Zeek, the HTTP log of HAProxy, the access logs of AWS load balancers and
// S3, the default access logs of Envoy, Istio, APISIX, nginx-proxy-manager, uWSGI, Squid and Gin,
// and a log_format of nginx, which is given and not detected.
//
// The lines may be in envelopes of syslog, Docker, Kubernetes, journald or a log collector.
// They may have the prefix of a program that printed them, such as docker compose.
//
// The first valid line of a log decides its format and its envelope. Any other line is a LineError,
// and reading goes on after it.
//
// # Cost
//
// The package is made for logs of many gigabytes. It parses a line in the read buffer, and
// allocates only for texts of JSON and logfmt with escapes, for JSON arrays of addresses, for lines
// in JSON envelopes, and for a peer after a virtual host. It never holds more than one line of
// MaxLine bytes. The slices of a Record point into the read buffer, or to a text that was decoded.
package accesslog
