// Package cli has what the subcommands of tb share: their streams, networks in flags, and how they
// read policies.
package cli

import "io"

// IO has the streams that a command reads and writes.
type IO struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}
