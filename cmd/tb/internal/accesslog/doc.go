// Package accesslog reads the requests out of web server logs, plain or gzipped.
//
// # Formats
//
// Common Log Format, as Apache writes it, and Combined, which adds two fields and is what
// nginx writes unless told otherwise:
//
//	192.0.2.7 - eve [17/May/2015:10:05:03 +0000] "GET /a?b HTTP/1.1" 200 17
//	192.0.2.7 - eve [17/May/2015:10:05:03 +0000] "GET /a?b HTTP/1.1" 200 17 "-" "curl"
//
// A "-" stands for what is not there. In quotes, a backslash escapes what follows. The
// virtual host may precede the client, as in Apache's vhost_combined, and the client may be
// a list, as in X-Forwarded-For, of which the first counts:
//
//	www.example.com:80 192.0.2.7 - eve [17/May/2015:10:05:03 +0000] "GET /a?b HTTP/1.1" …
//	192.0.2.7, 10.0.0.1 - eve [17/May/2015:10:05:03 +0000] "GET /a?b HTTP/1.1" 200 17
//
// JSON lines, an object a line. A Schema says in which fields the parts of a request are;
// the default one knows the access logs of Caddy and the names usual in nginx:
//
//	{"ts":1431857103.2,"request":{"remote_ip":"192.0.2.7","uri":"/a?b"},"size":17}
//	{"time_iso8601":"2015-05-17T10:05:03+00:00","remote_addr":"192.0.2.7", …}
//
// Times are epoch seconds, with or without fraction, or milliseconds, microseconds or
// nanoseconds, told apart by their size; RFC 3339; or as in Common Log Format.
//
// The first valid line of a log decides its format. A line that is none of that format
// is a LineError, and reading goes on behind it.
//
// # Cost
//
// The package is made for logs of many gigabytes. A line is parsed where it lies in the
// read buffer, without an allocation (but for a JSON text with escapes, and for a client
// that a host precedes), and never more than one line of MaxLine bytes is held. The slices
// of a Record point into that buffer.
package accesslog
