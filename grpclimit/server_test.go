package grpclimit

import (
	"context"
	"errors"
	"io"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
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
	conn := start(t, s, interceptors(mustNew(t, rule("[]", 2, ""), standing())))
	wantCode(t, sendMessages(t.Context(), conn, 50), codes.OK)
	wantCode(t, unary(t.Context(), conn), codes.OK)
	wantCode(t, sendMessages(t.Context(), conn, 50), codes.ResourceExhausted)
	if calls, messages := s.calls.Load(), s.messages.Load(); calls != 2 || messages != 50 {
		t.Errorf("%d calls and %d messages reached handlers, want 2 and 50", calls, messages)
	}
}

// Health checks and the methods of WithExempt take no tokens. Other methods of the same service do.
// Only WithFields makes header metadata of the fields: see TestFace.
func TestExemptMethods(t *testing.T) {
	l := mustNew(t, rule("[]", 1, ""), standing(), WithExempt(inputMethod))
	conn := start(t, &backend{}, append(interceptors(l), messageInterceptor(l)...))
	client, request := healthpb.NewHealthClient(conn), &healthpb.HealthCheckRequest{}
	header := metadata.MD{}
	for _, want := range []codes.Code{codes.OK, codes.ResourceExhausted} {
		for range 3 {
			_, err := client.Check(t.Context(), request)
			wantCode(t, err, codes.OK)
			wantCode(t, sendMessages(t.Context(), conn, 3), codes.OK)
		}
		wantCode(t, unary(t.Context(), conn, grpc.Header(&header)), want)
		if got := header.Get("ratelimit"); len(got) > 0 {
			t.Errorf("the field RateLimit is %q", got)
		}
	}
	watch, err := client.Watch(t.Context(), request)
	if err == nil {
		_, err = watch.Recv()
	}
	wantCode(t, err, codes.ResourceExhausted)
}
