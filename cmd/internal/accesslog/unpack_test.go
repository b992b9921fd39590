package accesslog

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// zipped returns the parts as gzip members, as appending to a .gz file makes them.
func zipped(t *testing.T, parts ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, part := range parts {
		w := gzip.NewWriter(&b)
		io.WriteString(w, part)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// bzip2Log is a log of two lines, packed by bzip2: the standard library cannot write the format.
const bzip2Log = "QlpoOTFBWSZTWT/5VEMAADhfgEAQUAv6kALCRAowAAAgIABqCqpoDIABkBVU0aaaAANCKT1mpTJ" +
	"NgyarUmYggm+dIquUHCt2TTcsUVz5aisJHatBRqkk2UQeopqfIevxdyRThQkD/5VEMA=="

func TestPackedLogsAreDetected(t *testing.T) {
	bzipped, err := base64.StdEncoding.DecodeString(bzip2Log)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"bzip2": bzipped,
		"gzip":  zipped(t, line("a")+"\n", line("b")+"\n"),
		"UTF-8": zipped(t, "\ufeff"+line("a")+"\n", line("b")+"\n"),
	} {
		got, bad, format := read(t, bytes.NewReader(data), Schema{})
		if fmt.Sprint(clients(got)) != "[a b]" || len(bad) != 0 || format != Common {
			t.Errorf("%s: got %v, malformed %v, format %q", name, got, bad, format)
		}
	}
}

func TestArchivesAreNoLogs(t *testing.T) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Name: "a.log", Size: 1, Mode: 0o600}); err != nil {
		t.Fatal(err)
	}
	for _, data := range [][]byte{b.Bytes(), zipped(t, b.String())} {
		_, err := NewReader(t.Context(), "a", bytes.NewReader(data), Schema{})
		if err == nil || !strings.Contains(err.Error(), "a: an archive of tar: want the log in it") {
			t.Error(err)
		}
	}
}

func TestTruncatedPackedLogIsAnError(t *testing.T) {
	log := strings.Repeat(line("a")+"\n", 100)
	for name, data := range map[string][]byte{
		"gzip": zipped(t, log), "bzip2": []byte("BZh91AY&SY0123456789"),
	} {
		r, err := NewReader(t.Context(), "a.log", bytes.NewReader(data[:len(data)-10]), Schema{})
		var rec Record
		for err == nil {
			err = r.Next(&rec)
		}
		if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.HasPrefix(err.Error(), "a.log: reading ") {
			t.Errorf("%s: got %v, want an unexpected EOF with the name", name, err)
		}
	}
}

// What is not unpacked is named.
func TestOtherPackedLogsAreRefused(t *testing.T) {
	for begin, want := range map[string]string{
		"\xfd7zXZ\x00\x00\x04": "zstd, xz or zip: want gzip", "PK\x03\x04\x14\x00": "zstd, xz",
		"\x28\xb5\x2f\xfd\x24\x01": "zstd, xz",
		"\xff\xfe1\x00.\x00":       "UTF-16, as PowerShell writes", "\xfe\xff\x001\x00.": "UTF-16",
		"1\x00.\x002\x00": "UTF-16",
	} {
		_, err := NewReader(t.Context(), "a.log", strings.NewReader(begin), Schema{})
		if err == nil || !strings.HasPrefix(err.Error(), "a.log: "+want) {
			t.Errorf("%q: error %v, want %s", begin, err, want)
		}
	}
}
