// Package accesslog reads the requests out of web server logs, plain or gzipped.
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
// The default Schema has the names of Caddy's access logs and the usual names of nginx:
//
//	{"ts":1431857103.2,"request":{"remote_ip":"192.0.2.7","uri":"/a?b"},"size":17}
//	{"time_iso8601":"2015-05-17T10:05:03+00:00","remote_addr":"192.0.2.7", …}
//
// A time has the form of RFC 3339 or of Common Log Format, or is a number of seconds,
// milliseconds, microseconds or nanoseconds since 1970. The size of the number decides the unit.
//
// The first valid line of a log decides its format. A line of another format is a LineError,
// and reading goes on after it.
//
// # Cost
//
// The package is made for logs of many gigabytes. It parses a line in the read buffer, and
// allocates only for JSON texts with escapes, for JSON arrays of addresses, and for a peer
// after a virtual host. It never holds more than one line of MaxLine bytes. The slices
// of a Record point into the read buffer.
package accesslog
