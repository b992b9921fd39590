package accesslog

import (
	"bufio"
	"compress/gzip"
	"io"
)

// unpack returns a reader of what in has packed, or in itself. The first bytes decide, not a name.
func unpack(in *bufio.Reader) (io.Reader, error) {
	magic, _ := in.Peek(2) // the first read returns an error again
	if string(magic) == "\x1f\x8b" {
		return gzip.NewReader(in)
	}
	return in, nil
}
