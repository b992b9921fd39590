package grpclimit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
)

// A goroutine may send while the handler returns, as in a proxy. The race detector sees a
// settlement that is used twice.
func TestSendWhileTheHandlerReturns(t *testing.T) {
	l := mustNew(t, adaptive)
	info := &grpc.StreamServerInfo{FullMethod: duplexMethod}
	for range 100 {
		sent := make(chan error)
		err := l.StreamServerInterceptor()(nil, &countingStream{ctx: t.Context()}, info,
			func(_ any, stream grpc.ServerStream) error {
				go func() { sent <- stream.SendMsg(nil) }()
				return nil
			})
		if err = errors.Join(err, <-sent); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *countingStream) SendMsg(any) error { return nil }

// The error of a context that a handler returns has the code that its client gets.
func TestContextErrorsOfAHandler(t *testing.T) {
	for err, want := range map[error]bool{
		context.DeadlineExceeded: true,
		context.Canceled:         false,
		fmt.Errorf("query: %w", context.DeadlineExceeded):     true,
		fmt.Errorf("x: %w", status.Error(codes.Internal, "")): false,
		errors.New("a bug"): false,
	} {
		if got := isOverload(t.Context(), err); got != want {
			t.Errorf("%v: an overload: %v, want %v", err, got, want)
		}
	}
}

// pushbackOfStream sends messages on a stream, and returns the pushback with which it ends.
func pushbackOfStream(t *testing.T, conn *grpc.ClientConn, messages int) []string {
	t.Helper()
	stream, err := testpb.NewTestServiceClient(conn).FullDuplexCall(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range messages {
		if err := stream.Send(&testpb.StreamingOutputCallRequest{}); err != nil {
			t.Fatal(err)
		}
		_, err = stream.Recv()
	}
	wantCode(t, err, codes.ResourceExhausted)
	if retryDelay(err) == 0 {
		t.Errorf("%v has no RetryInfo", err)
	}
	return stream.Trailer().Get(pushbackField)
}

// A stream whose first message is refused may be tried again. A stream whose handler has got a
// message must not be, because a retry would send that message again.
func TestPushbackOfMessages(t *testing.T) {
	l := mustNew(t, rule("[]", 2, ""), newClock().option())
	conn := start(t, &backend{}, messageInterceptor(l))
	if got := pushbackOfStream(t, conn, 3); !slices.Equal(got, []string{noRetry}) {
		t.Errorf("after two messages: pushback %q, want %s", got, noRetry)
	}
	if got := pushbackOfStream(t, conn, 1); len(got) != 1 || got[0] < "1000" || got[0] > "1500" {
		t.Errorf("at the first message: pushback %q, want 1000 to 1500", got)
	}
}

// The retry policy of a client waits for the tokens of a refused first message, and sends the
// messages of a stream once if they have reached the handler.
func TestRetryPolicyOfMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &backend{}
		conn := start(t, s, messageInterceptor(mustNew(t, rule("[]", 2, ""))),
			grpc.WithDefaultServiceConfig(retryPolicy))
		wantCode(t, sendMessages(t.Context(), conn, 3), codes.ResourceExhausted)
		if n := s.messages.Load(); n != 2 {
			t.Errorf("%d messages reached the handler, want 2", n)
		}
		begin := time.Now()
		wantCode(t, sendMessages(t.Context(), conn, 1), codes.OK)
		if d := time.Since(begin); d < time.Second || d > 1500*time.Millisecond {
			t.Errorf("the stream took %v, want 1 s to 1.5 s", d)
		}
	})
}

// A handler that panics has ended. If its calls stayed open, the rate would fall.
func TestPanicsEndTheirCalls(t *testing.T) {
	boom := func(_ any, stream grpc.ServerStream) error {
		stream.RecvMsg(nil)
		panic("handler")
	}
	for name, call := range map[string]func(context.Context, *Limiter){
		"unary": func(ctx context.Context, l *Limiter) {
			l.UnaryServerInterceptor()(ctx, nil, &grpc.UnaryServerInfo{FullMethod: unaryMethod},
				func(context.Context, any) (any, error) { panic("handler") })
		},
		"stream": func(ctx context.Context, l *Limiter) {
			l.StreamServerInterceptor()(nil, &countingStream{ctx: ctx},
				&grpc.StreamServerInfo{FullMethod: duplexMethod}, boom)
		},
		"message": func(ctx context.Context, l *Limiter) {
			l.MessageServerInterceptor()(nil, &countingStream{ctx: ctx},
				&grpc.StreamServerInfo{FullMethod: duplexMethod}, boom)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := mustNew(t, adaptive)
			panics := 0
			for range 100 {
				func() {
					defer func() {
						if recover() != nil {
							panics++
						}
					}()
					call(t.Context(), l)
				}()
				time.Sleep(100 * time.Millisecond)
			}
			if rate := l.Stats()[0].Limit; panics != 100 || rateOf(rate.Tokens, rate.Per) < 100 {
				t.Errorf("%s: after %d panics the limit is %+v, want at least 100 a second",
					name, panics, rate)
			}
		})
	}
}

// Calls that end at the deadline of their clients do not look like answers of a fast server, also
// if it is below the target.
func TestDeadlinesOfClientsDoNotRaiseTheRate(t *testing.T) {
	const limited = `{"name": "r", "limit_keys": [], "algorithm_config": {"tokens_per_second": 50,
		"burst": 1, "adaptive": {"min": 1, "max": 1000, "target_p99": "100ms"}}}`
	info := &grpc.StreamServerInfo{FullMethod: duplexMethod}
	slow := func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
			return nil
		}
	}
	for name, call := range map[string]func(context.Context, *Limiter){
		"unary": func(ctx context.Context, l *Limiter) {
			l.UnaryServerInterceptor()(ctx, nil, &grpc.UnaryServerInfo{FullMethod: unaryMethod},
				func(ctx context.Context, _ any) (any, error) { return nil, slow(ctx) })
		},
		"stream": func(ctx context.Context, l *Limiter) {
			l.StreamServerInterceptor()(nil, &countingStream{ctx: ctx}, info,
				func(_ any, stream grpc.ServerStream) error { return slow(stream.Context()) })
		},
		"message": func(ctx context.Context, l *Limiter) {
			l.MessageServerInterceptor()(nil, &countingStream{ctx: ctx}, info,
				func(_ any, stream grpc.ServerStream) error {
					return errors.Join(stream.RecvMsg(nil), slow(stream.Context()))
				})
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := mustNew(t, limited)
			for range 3000 {
				go func() {
					ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
					defer cancel()
					call(ctx, l)
				}()
				time.Sleep(10 * time.Millisecond)
			}
			synctest.Wait()
			if rate := l.Stats()[0].Limit; rateOf(rate.Tokens, rate.Per) > 50 {
				t.Errorf("%s: the limit is %+v, want at most 50 a second", name, rate)
			}
		})
	}
}
