package accesslog

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// MaxLine is the longest line that a Reader accepts, in bytes with the line end. It is the size of
// the buffer in which lines are parsed.
const MaxLine = 128 << 10

// voters is how many lines at the beginning of a log choose its format.
const voters = 100

// excerpt is how many bytes of a malformed line an error quotes.
const excerpt = 60

// Reader reads the requests of one log. It is not safe for concurrent use.
type Reader struct {
	Lines int64 // how many lines have been read that are not blank

	name string
	in   *bufio.Reader
	line int64 // lines read so far
	detector

	first *LineError // the first malformed line, if it is before the first valid one
}

// NewReader returns a Reader of the log r. The name appears in errors. A log that begins
// like a gzip or bzip2 file is unpacked.
//
// When ctx is done, reading ends with its error, even during a Read of r that blocks. The
// Read goes on in the background until it returns, so the caller must not use r again. The
// caller must cancel ctx when it is done with the Reader.
func NewReader(ctx context.Context, name string, r io.Reader, s Schema) (*Reader, error) {
	detector, err := newDetector(s)
	if err != nil {
		return nil, err
	}
	plain, err := unpack(bufio.NewReaderSize(interruptible(ctx, r), MaxLine))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	lines := bufio.NewReaderSize(plain, MaxLine)
	if mark, _ := lines.Peek(3); string(mark) == "\ufeff" { // of UTF-8, from Windows
		_, _ = lines.Discard(len(mark))
	}
	begin, _ := lines.Peek(lines.Buffered())
	// In the first header of tar, NULs pad a name to 100 bytes, and the magic is at 257.
	if len(begin) >= 512 && begin[99] == 0 && bytes.HasPrefix(begin[257:], []byte("ustar")) {
		return nil, fmt.Errorf("%s: an archive of tar: want the log in it, such as from tar -xOf", name)
	}
	whole := bytes.Split(begin, []byte{'\n'})
	whole = whole[:min(len(whole)-1, voters)]
	for i := range whole {
		whole[i] = bytes.TrimSuffix(whole[i], []byte{'\r'})
	}
	err = detector.choose(slices.DeleteFunc(whole, isBlank)...)
	if errors.Is(err, errTwoFormats) {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	detector.w3c.columns, detector.w3c.date = nil, nil // Next reads the directives again
	return &Reader{name: name, in: lines, detector: detector}, nil
}

// interruptible returns a reader of the log whose Read returns when ctx is done.
func interruptible(ctx context.Context, log io.Reader) io.Reader {
	out, in := io.Pipe()
	go func() {
		_, err := io.CopyBuffer(in, struct{ io.Reader }{log}, make([]byte, MaxLine))
		in.CloseWithError(err)
	}()
	context.AfterFunc(ctx, func() { in.CloseWithError(context.Cause(ctx)) })
	return out
}

// Format returns the format of the log, which most of its first lines have.
func (r *Reader) Format() Format { return r.chosen.format }

// Next reads the next request into rec, whose slices are valid until the next call. It skips blank
// lines. For another line that is not a request it returns a *LineError, which wraps ErrMessage if
// the line is not malformed, and can be called again. At the end it returns io.EOF.
func (r *Reader) Next(rec *Record) error {
	for {
		line, err := r.readLine()
		if err != nil && !errors.Is(err, ErrTooLong) {
			return err
		}
		if err == nil && isBlank(line) {
			continue
		}
		r.Lines++
		if err == nil {
			if err = r.parse(line, rec); err == nil {
				return nil
			}
		}
		e := &LineError{r.name, r.line, err, string(line[:min(len(line), excerpt)])}
		if r.first == nil && r.chosen.parser == nil {
			r.first = e
		}
		return e
	}
}

func isBlank(line []byte) bool {
	return len(line) == 0 || line[0] <= ' ' && len(bytes.TrimSpace(line)) == 0
}

// readLine returns the next line without its end.
// For a line that is too long it returns ErrTooLong and the first bytes.
func (r *Reader) readLine() ([]byte, error) {
	line, err := r.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		line = bytes.Clone(line[:excerpt])
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = r.in.ReadSlice('\n')
		}
		if err == nil || errors.Is(err, io.EOF) {
			err = ErrTooLong
		}
	}
	switch {
	case err == nil || errors.Is(err, ErrTooLong):
	case errors.Is(err, io.EOF) && len(line) > 0: // the last line need not end
		err = nil
	case errors.Is(err, io.EOF):
		return nil, err
	default:
		return nil, fmt.Errorf("%s: reading line %d: %w", r.name, r.line+1, err)
	}
	r.line++
	line = bytes.TrimSuffix(line, []byte{'\n'})
	return bytes.TrimSuffix(line, []byte{'\r'}), err
}

// ErrEmpty is the error of a log without any line that is not blank.
var ErrEmpty = errors.New("the log is empty")

// NoFormat returns the error of a log that has no valid line. It says what the first line lacks in
// the nearest format, and names the formats that were tried.
func (r *Reader) NoFormat() error {
	if r.Lines == 0 {
		return fmt.Errorf("%s: %w", r.name, ErrEmpty)
	}
	err := fmt.Errorf("%s: no valid line in %d; %w", r.name, r.Lines, r.first)
	if hint := r.Hint(); hint != "" {
		err = fmt.Errorf("%w; %s", err, hint)
	}
	return fmt.Errorf("%w; want %s", err, r.tried)
}

// Hint says how to name the fields of JSON lines, if one has no time, client or path under the
// usual names. It is empty if there is none.
func (r *Reader) Hint() string { return r.json.hint }

// unpack returns a reader of what in has packed, or in itself. The first bytes decide, not a name.
func unpack(in *bufio.Reader) (io.Reader, error) {
	begin, _ := in.Peek(6) // the first read returns an error again
	is := func(magic string) bool { return strings.HasPrefix(string(begin), magic) }
	switch {
	case is("\x1f\x8b"):
		return gzip.NewReader(in)
	case is("BZh"):
		return bzip2.NewReader(in), nil
	case is("\x28\xb5\x2f\xfd"), is("\xfd7zXZ\x00"), is("PK\x03\x04"):
		return nil, errors.New("zstd, xz or zip: want gzip, bzip2 or a plain log, such as from" +
			" zstd -dc, xz -dc or unzip -p")
	case is("\xff\xfe"), is("\xfe\xff"), len(begin) > 1 && begin[0] != 0 && begin[1] == 0:
		return nil, errors.New("UTF-16, as PowerShell writes: want UTF-8, such as from" +
			" iconv -f UTF-16 -t UTF-8")
	}
	return in, nil
}
