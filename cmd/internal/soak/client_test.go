package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// An event explains errors of some kinds only, so each error has the right one.
func TestKindsOfErrors(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{statusError(503), undecided},
		{statusError(502), "status 502"},
		{fmt.Errorf("dial: %w", syscall.ECONNREFUSED), refused},
		{fmt.Errorf("read: %w", syscall.ECONNRESET), lost},
		{fmt.Errorf("Get: %w", io.EOF), lost},
		{errors.New("http2: server sent GOAWAY and closed the connection"), lost},
		{context.DeadlineExceeded, timeout},
		{status.Error(codes.DeadlineExceeded, "context deadline exceeded"), timeout},
		{status.Error(codes.Unavailable, "the rate limiter cannot decide"), undecided},
		{status.Error(codes.Unavailable, "dial tcp: connect: connection refused"), refused},
		{status.Error(codes.Unavailable, "error reading from server: EOF"), lost},
		{status.Error(codes.InvalidArgument, "domain: want a name"), "InvalidArgument"},
	} {
		if got := kindOf(c.err); got != c.want {
			t.Errorf("%v is %s, want %s", c.err, got, c.want)
		}
	}
}
