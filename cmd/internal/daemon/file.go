package daemon

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// maxFile bounds a file, in bytes.
const maxFile = 16 << 20

// OpenRegular opens a regular file to read it. Other files may block or have no end.
func OpenRegular(name string) (*os.File, error) {
	// Without O_NONBLOCK a named pipe cannot be opened before it has a writer.
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: want a regular file: a pipe, a device or a directory"+
			" cannot be read again", name)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// ReadRegular returns the text of a regular file.
func ReadRegular(name string) (string, error) {
	f, err := OpenRegular(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // nothing was written
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s: want at most %d bytes", name, maxFile)
	}
	return string(data), err
}
