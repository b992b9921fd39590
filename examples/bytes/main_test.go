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
	for name, copied := range map[string]func(context.Context, *ratelimit.Bucket, *bytes.Buffer) error{
		"reads of 32 KiB": func(ctx context.Context, b *ratelimit.Bucket, _ *bytes.Buffer) error {
			return iotest.TestReader(&reader{ctx, b, bytes.NewReader(content)}, content)
		},
		"short reads": func(ctx context.Context, b *ratelimit.Bucket, to *bytes.Buffer) error {
			from := iotest.HalfReader(bytes.NewReader(content))
			_, err := io.Copy(to, &reader{ctx, b, from})
			return err
		},
		"one write": func(ctx context.Context, b *ratelimit.Bucket, to *bytes.Buffer) error {
			_, err := (&writer{ctx, b, to}).Write(content)
			return err
		},
		"small writes": func(ctx context.Context, b *ratelimit.Bucket, to *bytes.Buffer) error {
			from := iotest.OneByteReader(bytes.NewReader(content))
			_, err := io.Copy(&writer{ctx, b, to}, from)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, to := time.Now(), new(bytes.Buffer)
				if err := copied(t.Context(), newBucket(t), to); err != nil {
					t.Error(err)
				}
				took := time.Since(began).Round(time.Millisecond)
				if took < 10*time.Second || took > 10400*time.Millisecond {
					t.Errorf("%v, want 10s, and up to 400ms for the read that finds the end", took)
				}
				if to.Len() > 0 && !bytes.Equal(to.Bytes(), content) {
					t.Error("the copy differs")
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
	n, written := (&writer{ctx, newBucket(t), io.Discard}).Write(content)
	if !errors.Is(read, context.Canceled) || !errors.Is(written, context.Canceled) || n != 0 {
		t.Error(read, written, n)
	}
}
