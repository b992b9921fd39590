package accesslog

import (
	"bufio"
	"compress/gzip"
	"io"

	"github.com/klauspost/compress/zstd"
)

// maxWindow is the longest window of a zstd stream, in bytes. It bounds the memory for unpacking,
// and is the bound of the command zstd.
const maxWindow = 128 << 20

// unpack returns a reader of what in has packed, or in itself. The first bytes decide, not a name.
func unpack(in *bufio.Reader) (io.Reader, error) {
	magic, _ := in.Peek(4) // the first read returns an error again
	switch {
	case len(magic) >= 2 && string(magic[:2]) == "\x1f\x8b":
		return gzip.NewReader(in)
	case string(magic) == "\x28\xb5\x2f\xfd":
		return zstd.NewReader(in, zstd.WithDecoderConcurrency(1), // no goroutines to end
			zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	}
	return in, nil
}
