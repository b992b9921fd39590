package grpclimit

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed-181794aa/ratelimit"
)

func waiting(wait WaitFunc) []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(UnaryClientInterceptor(wait)),
		grpc.WithChainStreamInterceptor(StreamClientInterceptor(wait)),
	}
}

// Calls and streams of a client wait for its bucket, one after another.
func TestClientWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		bucket, err := ratelimit.NewBucket(ratelimit.Limit{Capacity: 1, Tokens: 1, Per: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		conn := start(t, &backend{}, nil, waiting(
			func(ctx context.Context, cc *grpc.ClientConn, method string) error {
				seen = append(seen, cc.Target()+method)
				return bucket.Wait(ctx, 1)
			},
		)...)
		begin := time.Now()
		for want := range 4 {
			call := func() error { return unary(t.Context(), conn) }
			if want%2 == 1 {
				call = func() error { return sendMessages(t.Context(), conn, 3) }
			}
			wantCode(t, call(), codes.OK)
			if d := time.Since(begin); d != time.Duration(want)*time.Second {
				t.Errorf("call %d ended after %v, want %d s", want+1, d, want)
			}
		}
		const target = "passthrough:memory"
		if !slices.Equal(seen[:2], []string{target + unaryMethod, target + inputMethod}) {
			t.Errorf("the function gets %q", seen)
		}
	})
}

// A call that cannot wait is not sent.
func TestErrorsOfAWait(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		code  codes.Code
		delay time.Duration
	}{
		"status":    {status.Error(codes.Aborted, "x"), codes.Aborted, 0},
		"cancelled": {context.Canceled, codes.Canceled, 0},
		"down":      {errors.New("the store is down"), codes.Unavailable, 0},
		"crowd":     {&ratelimit.WaitError{Wait: time.Hour}, codes.ResourceExhausted, time.Hour},
		"never":     {&ratelimit.WaitError{Wait: ratelimit.Never}, codes.ResourceExhausted, 0},
		"late": {
			&ratelimit.WaitError{Wait: time.Hour, Deadline: true}, codes.DeadlineExceeded, 0,
		},
	} {
		s := &backend{}
		conn := start(t, s, nil, waiting(
			func(context.Context, *grpc.ClientConn, string) error { return c.err })...)
		err := unary(t.Context(), conn)
		wantCode(t, err, c.code)
		wantCode(t, sendMessages(t.Context(), conn, 1), c.code)
		if n := s.calls.Load(); n != 0 {
			t.Errorf("%s: %d calls were sent", name, n)
		}
		if d := retryDelay(err); d != c.delay {
			t.Errorf("%s: RetryInfo %v, want %v", name, d, c.delay)
		}
		if !strings.Contains(err.Error(), status.Convert(c.err).Message()) {
			t.Errorf("%s: %v lacks the text of %v", name, err, c.err)
		}
	}
}
