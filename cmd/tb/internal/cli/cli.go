// Package cli has the types that the subcommands of tb share.
package cli

import "io"

// IO has the streams that a command reads and writes.
type IO struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}
