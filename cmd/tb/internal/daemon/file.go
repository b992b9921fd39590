package daemon

import (
	"fmt"
	"io"
	"os"
	"syscall"
)

// maxFile bounds a file, in bytes.
const maxFile = 16 << 20

// ReadRegular returns the text of a regular file. Other files may block or have no end.
func ReadRegular(name string) ([]byte, error) {
	// Without O_NONBLOCK a named pipe cannot be opened before it has a writer.
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: want a regular file: a pipe, a device or a directory"+
			" cannot be read again", name)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s: want at most %d bytes", name, maxFile)
	}
	return data, err
}
