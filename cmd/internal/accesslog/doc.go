// Package accesslog reads the requests out of the logs of web servers, proxies and load
// balancers, plain or packed by gzip or bzip2.
//
// Most of the first hundred lines of a log decide its format, and the envelope of syslog, Docker or
// Kubernetes that its lines are in. Any other line is a LineError, and reading goes on after it.
//
// The package is made for logs of many gigabytes. It parses a line in the read buffer, nearly
// always without allocations. The slices of a Record point into it, or to a text that was decoded.
package accesslog
