package grpclimit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	unaryMethod  = "/grpc.testing.TestService/UnaryCall"
	inputMethod  = "/grpc.testing.TestService/StreamingInputCall"
	duplexMethod = "/grpc.testing.TestService/FullDuplexCall"
)

// backend is a server's side of the calls, which counts them and their messages.
type backend struct {
	testpb.UnimplementedTestServiceServer
	calls, messages atomic.Int64
}

func (s *backend) UnaryCall(
	context.Context, *testpb.SimpleRequest,
) (*testpb.SimpleResponse, error) {
	s.calls.Add(1)
	return &testpb.SimpleResponse{}, nil
}

func (s *backend) StreamingInputCall(stream grpc.ClientStreamingServer[
	testpb.StreamingInputCallRequest, testpb.StreamingInputCallResponse,
]) error {
	s.calls.Add(1)
	for {
		_, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return stream.SendAndClose(&testpb.StreamingInputCallResponse{})
		case err != nil:
			return err
		}
		s.messages.Add(1)
	}
}

func (s *backend) FullDuplexCall(stream grpc.BidiStreamingServer[
	testpb.StreamingOutputCallRequest, testpb.StreamingOutputCallResponse,
]) error {
	s.calls.Add(1)
	for {
		if _, err := stream.Recv(); err != nil {
			return err
		}
		s.messages.Add(1)
		if err := stream.Send(&testpb.StreamingOutputCallResponse{}); err != nil {
			return err
		}
	}
}

// standing returns the option of a clock that stands still.
func standing() Option {
	now := time.Unix(1_800_000_000, 0)
	return WithHTTPOptions(httplimit.WithLimiterOptions(
		tb.WithClock(func() time.Time { return now })))
}

func mustParse(t testing.TB, policy string) *httplimit.Policy {
	t.Helper()
	p, err := httplimit.ParsePolicy([]byte(policy))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// mustNew returns a limiter of a policy in JSON.
func mustNew(t testing.TB, policy string, opts ...Option) *Limiter {
	t.Helper()
	l, err := New(mustParse(t, policy), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// rule returns a policy of one rule of a token a second, with more fields.
func rule(keys string, burst int, more string) string {
	if more != "" {
		more = ", " + more
	}
	return fmt.Sprintf(`{"name": "r", "limit_keys": %s,
		"algorithm_config": {"tokens_per_second": 1, "burst": %d}%s}`, keys, burst, more)
}

// interceptors returns the options of a server whose calls l limits.
func interceptors(l *Limiter) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(l.UnaryServerInterceptor()),
		grpc.ChainStreamInterceptor(l.StreamServerInterceptor()),
	}
}

// start starts a server of s on a listener in memory, and returns a connection to it.
func start(
	t testing.TB, s *backend, opts []grpc.ServerOption, dial ...grpc.DialOption,
) *grpc.ClientConn {
	t.Helper()
	listener := bufconn.Listen(1 << 20)
	dial = append(dial, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		return listener.DialContext(ctx)
	}))
	server := grpc.NewServer(opts...)
	testpb.RegisterTestServiceServer(server, s)
	healthpb.RegisterHealthServer(server, health.NewServer())
	done := make(chan error)
	go func() { done <- server.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:memory",
		append(dial, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return conn
}

func unary(ctx context.Context, conn *grpc.ClientConn, opts ...grpc.CallOption) error {
	_, err := testpb.NewTestServiceClient(conn).UnaryCall(ctx, &testpb.SimpleRequest{}, opts...)
	return err
}

// wantCode fails the test unless the error has this code.
func wantCode(t testing.TB, err error, want codes.Code) {
	t.Helper()
	if got := status.Code(err); got != want {
		t.Errorf("%v: code %v, want %v", err, got, want)
	}
}
