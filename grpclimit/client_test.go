package grpclimit

import (
	"context"
	"errors"
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

func newBucket(t *testing.T, capacity int) *ratelimit.Bucket {
	t.Helper()
	b, err := ratelimit.NewBucket(ratelimit.Limit{Capacity: capacity, Tokens: 1, Per: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Calls and streams of a client wait for its bucket, one after another.
func TestClientWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bucket := newBucket(t, 1)
		conn := start(t, &backend{}, nil, waiting(
			func(ctx context.Context, _ *grpc.ClientConn, _ string) error { return bucket.Wait(ctx, 1) },
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
	})
}

// A client has a bucket for each method or target, if its function asks for that.
func TestClientWaitsByMethodAndTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type call struct{ target, method string }
		limiter, err := ratelimit.New[call](ratelimit.Limit{Capacity: 1, Tokens: 1, Per: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		wait := func(ctx context.Context, cc *grpc.ClientConn, method string) error {
			return limiter.Wait(ctx, call{cc.Target(), method}, 1)
		}
		conn := start(t, &backend{}, nil, waiting(wait)...)
		begin := time.Now()
		wantCode(t, unary(t.Context(), conn), codes.OK)
		wantCode(t, sendMessages(t.Context(), conn, 1), codes.OK)
		if d := time.Since(begin); d != 0 {
			t.Errorf("another method waited for %v", d)
		}
		want := call{"passthrough:memory", unaryMethod}
		if level, _ := limiter.Level(t.Context(), want); level.Tokens != 0 {
			t.Errorf("%v has %v tokens, want 0", want, level.Tokens)
		}
	})
}

// A call that cannot wait ends at once and is not sent.
func TestClientThatCannotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bucket, s, cost := newBucket(t, 1), &backend{}, 1
		conn := start(t, s, nil, waiting(
			func(ctx context.Context, _ *grpc.ClientConn, _ string) error {
				return bucket.Wait(ctx, float64(cost))
			},
		)...)
		wantCode(t, unary(t.Context(), conn), codes.OK)
		begin := time.Now()
		short, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		wantCode(t, unary(short, conn), codes.DeadlineExceeded)
		wantCode(t, sendMessages(short, conn, 1), codes.DeadlineExceeded)
		cost = 2 // above the capacity
		err := unary(t.Context(), conn)
		wantCode(t, err, codes.ResourceExhausted)
		if d := retryDelay(err); d != 0 {
			t.Errorf("RetryInfo %v for a cost that never fits", d)
		}
		if d := time.Since(begin); d != 0 {
			t.Errorf("the errors came after %v", d)
		}
		cost = 1
		cancelled, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second/4, cancel)
		wantCode(t, unary(cancelled, conn), codes.Canceled)
		if n := s.calls.Load(); n != 1 {
			t.Errorf("%d calls were sent, want 1", n)
		}
	})
}

func TestErrorsOfAWait(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		code  codes.Code
		delay time.Duration
	}{
		"status": {status.Error(codes.Aborted, "x"), codes.Aborted, 0},
		"down":   {errors.New("the store is down"), codes.Unavailable, 0},
		"crowd":  {&ratelimit.WaitError{Wait: time.Hour}, codes.ResourceExhausted, time.Hour},
		"never":  {&ratelimit.WaitError{Wait: ratelimit.Never}, codes.ResourceExhausted, 0},
		"late": {
			&ratelimit.WaitError{Wait: time.Hour, Deadline: true}, codes.DeadlineExceeded, 0,
		},
	} {
		err := waitError(c.err)
		wantCode(t, err, c.code)
		if d := retryDelay(err); d != c.delay {
			t.Errorf("%s: RetryInfo %v, want %v", name, d, c.delay)
		}
		if !strings.Contains(err.Error(), status.Convert(c.err).Message()) {
			t.Errorf("%s: %v lacks the text of %v", name, err, c.err)
		}
	}
}
