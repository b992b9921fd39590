package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/seed-181794aa/ratelimit"
)

func newBucket(t *testing.T) *ratelimit.Bucket {
	t.Helper()
	b, err := ratelimit.NewBucket(ratelimit.Limit{Capacity: 400, Tokens: 1000, Per: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Whatever the sizes of the reads and writes are, 10,400 bytes take the ten seconds of the 10,000
// above the burst.
func TestBytesTakeTheirTime(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abc"), 800)
	for name, c := range map[string]struct {
		wrap   func(io.Reader) io.Reader
		writes bool
	}{
		"large reads": {iotest.DataErrReader, false}, "small reads": {iotest.OneByteReader, false},
		"one write": {iotest.DataErrReader, true}, "small writes": {iotest.OneByteReader, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, b, from, to := time.Now(), newBucket(t), bytes.NewReader(content), new(bytes.Buffer)
				var err error
				if c.writes {
					_, err = io.Copy(&writer{t.Context(), b, to}, c.wrap(from))
				} else {
					_, err = io.Copy(to, c.wrap(&reader{t.Context(), b, iotest.HalfReader(from)}))
				}
				took := time.Since(began).Round(time.Millisecond)
				if took < 10*time.Second || took > 10400*time.Millisecond {
					t.Errorf("%v, want 10s, and up to 400ms for the read that finds the end", took)
				}
				if err != nil || !bytes.Equal(to.Bytes(), content) {
					t.Error("the copy differs", err)
				}
			})
		})
	}
}

func TestEndedContextStopsBoth(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	content := bytes.Repeat([]byte("x"), 1000)
	_, read := io.ReadAll(&reader{ctx, newBucket(t), bytes.NewReader(content)})
	_, empty := (&reader{ctx, newBucket(t), bytes.NewReader(content)}).Read(nil) // takes nothing
	n, written := (&writer{ctx, newBucket(t), io.Discard}).Write(content)
	if !errors.Is(read, context.Canceled) || !errors.Is(written, context.Canceled) ||
		n != 0 || empty != nil {
		t.Error(read, written, n, empty)
	}
}
