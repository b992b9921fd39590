package accesslog

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// request is a Record that can be kept and compared.
type request struct {
	time                 string
	ip, user, host, path string
}

func kept(rec *Record) request {
	return request{
		time.Unix(0, rec.Time).UTC().Format(time.RFC3339Nano),
		string(rec.Peer), string(rec.User), string(rec.Host), string(rec.Path),
	}
}

// read reads a log to its end, into its requests and malformed lines.
func read(t *testing.T, r io.Reader, s Schema) (got []request, bad []*LineError, f Format) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reader, err := NewReader(ctx, "a.log", r, s)
	if err != nil {
		t.Fatal(err)
	}
	var rec Record
	for {
		err := reader.Next(&rec)
		var lineErr *LineError
		switch {
		case err == nil:
			got = append(got, kept(&rec))
		case errors.As(err, &lineErr):
			bad = append(bad, lineErr)
		case errors.Is(err, io.EOF):
			return got, bad, reader.Format()
		default:
			t.Fatal(err)
		}
	}
}

// one reads a single line, which must be a request.
func one(t *testing.T, line string) (request, Format) {
	t.Helper()
	got, bad, format := read(t, strings.NewReader(line), Schema{})
	if len(got) != 1 || len(bad) != 0 {
		t.Fatalf("%.300q gave %v, malformed %v", line, got, bad)
	}
	return got[0], format
}

const at = "2015-05-17T10:05:03Z" // [17/May/2015:10:05:03 +0000]

// lineTest is a line and its request.
type lineTest struct {
	name, line string
	want       request
}

// checkLines checks that each line is detected as a request in the format.
func checkLines(t *testing.T, want Format, tests []lineTest) {
	t.Helper()
	for _, tt := range tests {
		if got, format := one(t, tt.line); got != tt.want || format != want {
			t.Errorf("%s: got %+v (%s), want %+v (%s)", tt.name, got, format, tt.want, want)
		}
	}
}

// malformedTest is a line, and the beginning or the end of its error.
type malformedTest struct{ line, want string }
