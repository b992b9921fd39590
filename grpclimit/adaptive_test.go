package grpclimit

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// adaptive is a policy whose rate follows the calls, with a target of 100 ms.
const adaptive = `{"name": "r", "limit_keys": [], "algorithm_config": {"tokens_per_second": 50,
	"burst": 100, "adaptive": {"min": 1, "max": 1000, "target_p99": "100ms"}}}`

// rate returns the limit of the only rule in tokens a second.
func rate(l *Limiter) float64 {
	limit := l.Stats()[0].Limit
	return float64(limit.Tokens) / limit.Per.Seconds()
}

// kinds are the ways in which a handler is called. A stream sends a message before its handler
// works, and a message is received before.
var kinds = map[string]func(ctx context.Context, l *Limiter, work func(context.Context) error){
	"unary": func(ctx context.Context, l *Limiter, work func(context.Context) error) {
		l.UnaryServerInterceptor()(ctx, nil, &grpc.UnaryServerInfo{FullMethod: unaryMethod},
			func(ctx context.Context, _ any) (any, error) { return nil, work(ctx) })
	},
	"silent stream": onStream((*Limiter).StreamServerInterceptor, nothing, nothing),
	"stream":        onStream((*Limiter).StreamServerInterceptor, grpc.ServerStream.SendMsg, nothing),
	"last message":  onStream((*Limiter).MessageServerInterceptor, grpc.ServerStream.RecvMsg, nothing),
	"first message": onStream((*Limiter).MessageServerInterceptor, grpc.ServerStream.RecvMsg,
		grpc.ServerStream.RecvMsg),
}

func nothing(grpc.ServerStream, any) error { return nil }

// onStream calls a handler that does something with its stream before and after it works.
func onStream(
	of func(*Limiter) grpc.StreamServerInterceptor, before, after func(grpc.ServerStream, any) error,
) func(context.Context, *Limiter, func(context.Context) error) {
	return func(ctx context.Context, l *Limiter, work func(context.Context) error) {
		of(l)(nil, &countingStream{ctx: ctx}, &grpc.StreamServerInfo{FullMethod: duplexMethod},
			func(_ any, stream grpc.ServerStream) error {
				if err := before(stream, nil); err != nil {
					return err
				}
				defer after(stream, nil)
				return work(stream.Context())
			})
	}
}

// The latency of a call counts until its handler returns, of a stream until its first message, and
// of a message until its handler receives again or returns. Codes of a server that is overloaded
// lower the rate, and codes that a client can cause do not.
func TestWhatLowersTheRate(t *testing.T) {
	all := []string{"unary", "silent stream", "stream", "last message", "first message"}
	calls := all[:2]
	fails := func(err error) func(context.Context) error {
		return func(context.Context) error { return err }
	}
	code := func(c codes.Code) func(context.Context) error { return fails(status.Error(c, "")) }
	takes := func(d time.Duration) func(context.Context) error {
		return func(context.Context) error { time.Sleep(d); return nil }
	}
	for name, c := range map[string]struct {
		work   func(context.Context) error
		kinds  []string
		lowers bool
	}{
		"unavailable":          {code(codes.Unavailable), calls, true},
		"deadline of another":  {code(codes.DeadlineExceeded), calls, true},
		"resource exhausted":   {code(codes.ResourceExhausted), all, false},
		"invalid argument":     {code(codes.InvalidArgument), all, false},
		"internal":             {code(codes.Internal), all, false},
		"timeout":              {fails(fmt.Errorf("query: %w", context.DeadlineExceeded)), calls, true},
		"cancellation":         {fails(context.Canceled), all, false},
		"panic":                {func(context.Context) error { panic("handler") }, all, false},
		"fast":                 {takes(time.Millisecond), all, false},
		"slow":                 {takes(time.Second), append(all[3:], calls...), true},
		"slow after a message": {takes(time.Second), []string{"stream"}, false},
	} {
		for _, kind := range c.kinds {
			synctest.Test(t, func(t *testing.T) {
				l := mustNew(t, adaptive)
				for range 100 {
					go func() {
						defer func() { _ = recover() }()
						kinds[kind](t.Context(), l, c.work)
					}()
					time.Sleep(100 * time.Millisecond)
				}
				time.Sleep(time.Second)
				if got := rate(l); (got < 50) != c.lowers {
					t.Errorf("%s, %s: the limit is %v a second, lower: want %v", kind, name, got, c.lowers)
				}
			})
		}
	}
}

// Calls that end at the deadline of their clients do not look like answers of a fast server or of
// one that is overloaded, also if it is below the target.
func TestDeadlinesOfClientsDoNotMoveTheRate(t *testing.T) {
	for _, kind := range []string{"unary", "silent stream", "last message"} {
		synctest.Test(t, func(t *testing.T) {
			l := mustNew(t, adaptive)
			for range 3000 {
				go func() {
					ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
					defer cancel()
					kinds[kind](ctx, l, func(ctx context.Context) error {
						<-ctx.Done()
						return fmt.Errorf("query: %w", ctx.Err())
					})
				}()
				time.Sleep(10 * time.Millisecond)
			}
			synctest.Wait()
			if got := rate(l); got != 50 {
				t.Errorf("%s: the limit is %v a second, want 50", kind, got)
			}
		})
	}
}

// A client may read the status behind its deadline. It pays what that costs, and not less than the
// estimate.
func TestStatusAfterTheDeadline(t *testing.T) {
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	for _, kind := range []string{"unary", "silent stream", "stream"} {
		l := mustNew(t, ruleOf("r", `"limit_keys": []`, `, "cost_source": "response:status",
			"status_costs": {"UNAUTHENTICATED": 3, "NOT_FOUND": 0.5}`), standing())
		for _, c := range []codes.Code{codes.Unauthenticated, codes.NotFound} {
			kinds[kind](late, l, func(context.Context) error { return status.Error(c, "") })
		}
		got := l.Explain(newRequest(t.Context(), unaryMethod))[0].Level.Tokens
		if got != 5-3-1 {
			t.Errorf("%s: %v tokens left, want 1", kind, got)
		}
	}
}
