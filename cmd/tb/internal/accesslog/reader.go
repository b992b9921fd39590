package accesslog

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
)

// MaxLine is the longest line that a Reader accepts, in bytes without the line end. It bounds
// the memory of a Reader.
const MaxLine = 1 << 20

// byteOrderMark precedes UTF-8 in files of some Windows programs.
const byteOrderMark = "\ufeff"

// excerpt is how many bytes of a malformed line an error quotes.
const excerpt = 60

// Reader reads the requests of one log. It is not safe for concurrent use.
type Reader struct {
	name   string
	in     *bufio.Reader // its buffer holds the longest line
	clf    *clfParser
	json   *jsonParser
	format Format // of the first valid line
	line   int64  // lines read so far
}

// NewReader returns a Reader of the log r. The name appears in errors. A log that begins
// like a gzip file is unpacked. A byte order mark is skipped.
//
// When ctx is done, reading ends with its error, even during a Read of r that blocks. The
// Read goes on in the background until it returns, so the caller must not use r again. The
// caller must cancel ctx when it is done with the Reader.
func NewReader(ctx context.Context, name string, r io.Reader, s Schema) (*Reader, error) {
	in := bufio.NewReader(interruptible(ctx, r))
	magic, _ := in.Peek(2) // the first read returns an error again
	var plain io.Reader = in
	if string(magic) == "\x1f\x8b" {
		unpacked, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		plain = unpacked
	}
	lines := bufio.NewReaderSize(plain, MaxLine+len("\r\n"))
	if mark, _ := lines.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		_, _ = lines.Discard(len(mark)) // cannot fail after Peek
	}
	return &Reader{
		name: name,
		in:   lines,
		clf:  &clfParser{extra: len(s.Extra), forwarded: s.Forwarded},
		json: newJSONParser(s),
	}, nil
}

// interruptible returns a reader of r that ctx ends. It copies in the background, which
// reads ahead and costs little: a switch of goroutines every 32 KiB.
func interruptible(ctx context.Context, r io.Reader) io.Reader {
	out, in := io.Pipe()
	context.AfterFunc(ctx, func() { in.CloseWithError(context.Cause(ctx)) })
	go func() {
		_, err := io.Copy(in, r)
		in.CloseWithError(err)
	}()
	return out
}

// Format returns the format of the log, which its first valid line decides.
func (r *Reader) Format() Format { return r.format }

// Lines returns how many lines have been read.
func (r *Reader) Lines() int64 { return r.line }

// Next reads the next request into rec, whose slices are valid until the next call. It skips
// empty lines. For a line that is not a request it returns a *LineError, and can be called
// again. At the end it returns io.EOF.
func (r *Reader) Next(rec *Record) error {
	for {
		line, err := r.readLine()
		if errors.Is(err, ErrTooLong) {
			return r.lineError(line, err)
		}
		if err != nil {
			return err
		}
		if len(line) == 0 {
			continue
		}
		if err := r.parse(line, rec); err != nil {
			return r.lineError(line, err)
		}
		return nil
	}
}

// parse parses a line in the format of the log. Before the format is known, the first byte
// decides: only JSON begins with a brace.
func (r *Reader) parse(line []byte, rec *Record) error {
	parse := r.clf.parse
	if r.format == JSON || r.format == Undetected && isObject(line) {
		parse = r.json.parse
	}
	format, err := parse(line, rec)
	if r.format == Undetected {
		r.format = format
	}
	return err
}

// isObject reports whether a line can only be JSON.
func isObject(line []byte) bool {
	line = bytes.TrimLeft(line, " \t")
	return len(line) > 0 && line[0] == '{'
}

// readLine returns the next line without its end. For a line that is too long it returns
// ErrTooLong and the first bytes, and skips the rest.
func (r *Reader) readLine() ([]byte, error) {
	line, err := r.in.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		r.line++
		first := bytes.Clone(line[:excerpt])
		return first, r.skipLine()
	case err == io.EOF && len(line) > 0: // the last line need not end
	case err == io.EOF:
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%s: reading line %d: %w", r.name, r.line+1, err)
	}
	r.line++
	line = bytes.TrimSuffix(line, []byte{'\n'})
	line = bytes.TrimSuffix(line, []byte{'\r'})
	if len(line) > MaxLine {
		return line, ErrTooLong
	}
	return line, nil
}

// skipLine reads to the end of the line. It returns ErrTooLong or a read error.
func (r *Reader) skipLine() error {
	for {
		_, err := r.in.ReadSlice('\n')
		switch {
		case err == nil || err == io.EOF:
			return ErrTooLong
		case !errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("%s: reading line %d: %w", r.name, r.line, err)
		}
	}
}

// lineError returns err as an error of the current line.
func (r *Reader) lineError(line []byte, err error) error {
	text := string(line[:min(len(line), excerpt)])
	return &LineError{File: r.name, Line: r.line, Err: err, Text: text}
}
