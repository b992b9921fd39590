// Package cli has what tb, tb-proxy and tb-rls share: their streams, networks in flags, and how
// they read policies.
package cli

import "io"

// IO has the streams that a command reads and writes.
type IO struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}
