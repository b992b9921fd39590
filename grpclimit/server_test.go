package grpclimit

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// sendMessages sends n messages on a new stream, and returns the error with which the server ends
// it.
func sendMessages(ctx context.Context, conn *grpc.ClientConn, n int) error {
	stream, err := testpb.NewTestServiceClient(conn).StreamingInputCall(ctx)
	if err != nil {
		return err
	}
	for range n {
		if err := stream.Send(&testpb.StreamingInputCallRequest{}); errors.Is(err, io.EOF) {
			break // the server has ended the stream
		} else if err != nil {
			return err
		}
	}
	_, err = stream.CloseAndRecv()
	return err
}

// A stream takes its tokens when it starts, and its messages are free.
func TestStartOfAStream(t *testing.T) {
	s := &backend{}
	conn := start(t, s, interceptors(mustNew(t, rule("[]", 2, ""), newClock().option())))
	wantCode(t, sendMessages(t.Context(), conn, 50), codes.OK)
	wantCode(t, unary(t.Context(), conn), codes.OK)
	wantCode(t, sendMessages(t.Context(), conn, 50), codes.ResourceExhausted)
	if calls, messages := s.calls.Load(), s.messages.Load(); calls != 2 || messages != 50 {
		t.Errorf("%d calls and %d messages reached handlers, want 2 and 50", calls, messages)
	}
}

// Interceptors before the limiter see all calls and their errors. Those after it see the granted
// calls.
func TestChainedInterceptors(t *testing.T) {
	var seen []string
	see := func(name string) []grpc.ServerOption {
		return []grpc.ServerOption{
			grpc.ChainUnaryInterceptor(func(
				ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
			) (any, error) {
				reply, err := handler(ctx, req)
				seen = append(seen, name+" unary "+status.Code(err).String())
				return reply, err
			}),
			grpc.ChainStreamInterceptor(func(
				srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler,
			) error {
				err := handler(srv, stream)
				seen = append(seen, name+" stream "+status.Code(err).String())
				return err
			}),
		}
	}
	l := mustNew(t, rule("[]", 2, ""), newClock().option())
	conn := start(t, &backend{}, slices.Concat(see("before"), interceptors(l), see("after")))
	unary(t.Context(), conn)
	sendMessages(t.Context(), conn, 1)
	unary(t.Context(), conn)
	sendMessages(t.Context(), conn, 1)
	want := []string{
		"after unary OK", "before unary OK", "after stream OK", "before stream OK",
		"before unary ResourceExhausted", "before stream ResourceExhausted",
	}
	if !slices.Equal(seen, want) {
		t.Errorf("%q, want %q", seen, want)
	}
}

const delayed = `"on_limit": "delay", "max_delay": "5s"`

// A delayed call waits, and its handler is called when its tokens may be used. A call whose
// deadline is before that is refused at once.
func TestDelayedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &backend{}
		conn := start(t, s, interceptors(mustNew(t, rule("[]", 1, delayed))))
		begin := time.Now()
		for want := range 3 {
			wantCode(t, unary(t.Context(), conn), codes.OK)
			if d := time.Since(begin); d != time.Duration(want)*time.Second {
				t.Errorf("call %d ended after %v, want %d s", want+1, d, want)
			}
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		begin = time.Now()
		wantCode(t, unary(short, conn), codes.ResourceExhausted)
		if d := time.Since(begin); d != 0 {
			t.Errorf("the refusal came after %v", d)
		}
		if n := s.calls.Load(); n != 3 {
			t.Errorf("%d calls reached the handler, want 3", n)
		}
	})
}

// A call that is cancelled while it waits gives its tokens back.
func TestCancelledWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &backend{}
		l := mustNew(t, rule("[]", 1, delayed))
		conn := start(t, s, interceptors(l))
		wantCode(t, unary(t.Context(), conn), codes.OK)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second/4, cancel)
		wantCode(t, unary(ctx, conn), codes.Canceled)
		synctest.Wait()
		if st := l.Stats()[0]; st.HungUp != 1 || st.Waiting != 0 {
			t.Errorf("%d hung up and %d waiting, want 1 and 0", st.HungUp, st.Waiting)
		}
		begin := time.Now()
		wantCode(t, unary(t.Context(), conn), codes.OK)
		if d := time.Since(begin); d != 3*time.Second/4 {
			t.Errorf("the next call waited for %v, want 750 ms", d)
		}
		if n := s.calls.Load(); n != 2 {
			t.Errorf("%d calls reached the handler, want 2", n)
		}
	})
}

// StopWaiting refuses the calls that wait for too long, so that GracefulStop is not late.
func TestStopWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustNew(t, rule("[]", 1, delayed))
		conn := start(t, &backend{}, interceptors(l))
		wantCode(t, unary(t.Context(), conn), codes.OK)
		begin := time.Now()
		time.AfterFunc(time.Second/4, func() { l.StopWaiting(time.Now()) })
		wantCode(t, unary(t.Context(), conn), codes.ResourceExhausted)
		if d := time.Since(begin); d != time.Second/4 {
			t.Errorf("the refusal came after %v, want 250 ms", d)
		}
	})
}

// WithFields sends the fields of HTTP as header metadata, for granted and for refused calls.
func TestFields(t *testing.T) {
	l := mustNew(t, rule("[]", 1, ""), newClock().option(), WithFields(),
		WithHTTPOptions(httplimit.WithFields(httplimit.Fields{Policy: true})))
	conn := start(t, &backend{}, interceptors(l))
	for i, want := range []map[string]string{
		{"ratelimit": `"r";r=0;t=1`, "ratelimit-policy": `"r";q=1;w=1`, "ratelimit-limit": "1"},
		{"ratelimit": `"r";r=0;t=1`, "ratelimit-remaining": "0", "retry-after": "1"},
	} {
		var header metadata.MD
		unary(t.Context(), conn, grpc.Header(&header))
		for name, value := range want {
			if got := strings.Join(header.Get(name), " | "); got != value {
				t.Errorf("call %d: %s %q, want %q", i+1, name, got, value)
			}
		}
	}
	var header metadata.MD
	silent := mustNew(t, rule("[]", 1, ""))
	unary(t.Context(), start(t, &backend{}, interceptors(silent)), grpc.Header(&header))
	if len(header.Get("ratelimit")) > 0 {
		t.Errorf("without WithFields: %v", header)
	}
}

// adaptive is a policy whose rate follows the calls.
const adaptive = `{"name": "r", "limit_keys": [], "algorithm_config": {"tokens_per_second": 100,
	"burst": 1000, "adaptive": {"min": 1, "max": 1000, "target_p99": "100ms"}}}`

// Codes of a server that is overloaded lower an adaptive rate, and codes that a client can cause do
// not.
func TestCodesThatLowerTheRate(t *testing.T) {
	for code, lowers := range map[codes.Code]bool{
		codes.OK: false, codes.Unavailable: true, codes.DeadlineExceeded: true,
		codes.ResourceExhausted: false, codes.InvalidArgument: false, codes.Internal: false,
	} {
		for name, call := range map[string]func(*grpc.ClientConn){
			"unary":  func(conn *grpc.ClientConn) { unary(context.Background(), conn) },
			"stream": func(conn *grpc.ClientConn) { echo(context.Background(), conn, 0) },
		} {
			synctest.Test(t, func(t *testing.T) {
				l := mustNew(t, adaptive)
				conn := start(t, &backend{fail: status.Error(code, "")}, interceptors(l))
				for range 100 {
					call(conn)
					time.Sleep(100 * time.Millisecond)
				}
				if rate := l.Stats()[0].Limit; (rateOf(rate.Tokens, rate.Per) < 100) != lowers {
					t.Errorf("%s with %v: the limit is %+v, lower: want %v", name, code, rate, lowers)
				}
			})
		}
	}
}

// The latency of a stream is the time to its first message, not to its end.
func TestLatencyOfAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustNew(t, adaptive)
		conn := start(t, &backend{}, interceptors(l))
		for range 100 {
			go echo(t.Context(), conn, 10*time.Second)
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(20 * time.Second)
		if rate := l.Stats()[0].Limit; rateOf(rate.Tokens, rate.Per) < 100 {
			t.Errorf("the limit is %+v, want at least 100 a second", rate)
		}
	})
}

func rateOf(tokens int64, per time.Duration) float64 { return float64(tokens) / per.Seconds() }

// echo sends a message, waits for its echo, and ends the stream after some time.
func echo(ctx context.Context, conn *grpc.ClientConn, end time.Duration) error {
	stream, err := testpb.NewTestServiceClient(conn).FullDuplexCall(ctx)
	if err != nil {
		return err
	}
	if end > 0 {
		stream.Send(&testpb.StreamingOutputCallRequest{})
		stream.Recv()
		time.Sleep(end)
	}
	stream.CloseSend()
	_, err = stream.Recv()
	return err
}

// A deadline that the client chooses does not lower an adaptive rate.
func TestDeadlineOfTheClientIsNoOverload(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := status.Error(codes.DeadlineExceeded, "")
	if !isOverload(ctx, err) {
		t.Error("before the end of the call: not an overload")
	}
	cancel()
	if isOverload(ctx, err) {
		t.Error("after the end of the call: an overload")
	}
}

// Hooks get the method, the address and the context of a call.
func TestHooksSeeTheCall(t *testing.T) {
	type userKey struct{}
	var seen *http.Request
	l := mustNew(t, rule("[]", 1, ""), WithHTTPOptions(httplimit.WithHooks(httplimit.Hooks{
		Granted: func(r *http.Request, e httplimit.Event) {
			if seen = r; e.Writer != nil {
				t.Error("a call has a ResponseWriter")
			}
		},
	})))
	identify := func(
		ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
	) (any, error) {
		return handler(context.WithValue(ctx, userKey{}, "alice"), req)
	}
	conn := start(t, &backend{}, append(
		[]grpc.ServerOption{grpc.ChainUnaryInterceptor(identify)}, interceptors(l)...))
	wantCode(t, unary(t.Context(), conn), codes.OK)
	if seen.URL.Path != unaryMethod || seen.Method != http.MethodPost ||
		seen.RemoteAddr != "bufconn" || seen.Context().Value(userKey{}) != "alice" {
		t.Errorf("%+v", seen)
	}
}
