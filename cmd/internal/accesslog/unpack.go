package accesslog

import (
	"bufio"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
)

// unpack returns a reader of what in has packed, or in itself. The first bytes decide, not a name.
func unpack(in *bufio.Reader) (io.Reader, error) {
	begin, _ := in.Peek(6) // the first read returns an error again
	is := func(magic string) bool { return strings.HasPrefix(string(begin), magic) }
	switch {
	case is("\x1f\x8b"):
		plain, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
		return withoutTar(plain)
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

// withoutTar returns a reader of the same, or an error if it is an archive of tar.
func withoutTar(plain io.Reader) (io.Reader, error) {
	const magicAt, magic = 257, "ustar"
	buffered := bufio.NewReaderSize(plain, MaxLine)
	begin, _ := buffered.Peek(magicAt + len(magic)) // the first read returns an error again
	if strings.HasSuffix(string(begin), magic) && len(begin) == magicAt+len(magic) {
		return nil, errors.New("an archive of tar: want the log in it, such as from tar -xzO")
	}
	return buffered, nil
}
