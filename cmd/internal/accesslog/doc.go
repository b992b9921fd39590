// Package accesslog reads the requests out of the logs of web servers, proxies and load
// balancers, plain or packed by gzip or bzip2.
//
// A log is in Common or Combined Log Format, JSON lines, logfmt, one of the patterns of some
// programs, or in a log_format of nginx that is given. The comments of the
// parsers describe the formats. The lines may be in envelopes of syslog, Docker or Kubernetes.
//
// Most of the first hundred lines of a log decide its format and its envelope. Any other line is a
// LineError, and reading goes on after it.
//
// # Cost
//
// The package is made for logs of many gigabytes. It parses a line in the read buffer, and
// allocates only for logfmt, for texts of JSON with escapes, for JSON arrays of addresses, for
// lines in the JSON of Docker, and for a peer after a virtual host. It never holds more than one
// line of MaxLine bytes. The slices of a Record point into the read buffer, or to a text that was
// decoded.
package accesslog
