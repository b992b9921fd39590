// Package textfile reads files so that neither their kind nor their file system can stop a program.
package textfile

import (
	"context"
	"fmt"
	"io"
	"os"
)

// maxSize bounds a file that Read returns, in bytes.
const maxSize = 16 << 20

// Open opens a regular file to read it. Other files may block or have no end.
func Open(name string) (*os.File, error) {
	info, err := os.Stat(name) // before it is opened, which waits for the writer of a named pipe
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: want a regular file: a pipe, a device or a directory"+
			" cannot be read again", name)
	}
	if err != nil {
		return nil, err
	}
	return os.Open(name)
}

// Read returns the text of a regular file.
func Read(name string) (string, error) {
	f, err := Open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // nothing was written
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err == nil && len(data) > maxSize {
		err = fmt.Errorf("%s: want at most %d bytes", name, maxSize)
	}
	return string(data), err
}

// ReadUntil is Read, but returns an error if ctx is done first.
func ReadUntil(ctx context.Context, name string) (string, error) {
	return Await(ctx, name, func() (string, error) { return Read(name) })
}

// Await returns what read returns, or an error with the name if ctx is done first. It does not wait
// for the end of read then: a named pipe may never have a writer.
func Await(ctx context.Context, name string, read func() (string, error)) (string, error) {
	select {
	case r := <-start(read):
		return r.text, r.err
	case <-ctx.Done():
		return "", fmt.Errorf("%s: interrupted while reading", name)
	}
}

// result is what a read returns.
type result struct {
	text string
	err  error
}

// start reads in a goroutine of its own, because a named pipe or a file on a network may block for
// ever.
func start(read func() (string, error)) <-chan result {
	done := make(chan result, 1)
	go func() {
		text, err := read()
		done <- result{text, err}
	}()
	return done
}
