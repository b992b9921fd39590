package grpclimit

import (
	"errors"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
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
	l := mustNew(t, rule("[]", 2, ""), standing())
	conn := start(t, &backend{}, messageInterceptor(l))
	if got := pushbackOfStream(t, conn, 3); !slices.Equal(got, []string{noRetry}) {
		t.Errorf("after two messages: pushback %q, want %s", got, noRetry)
	}
	if got := pushbackOfStream(t, conn, 1); len(got) != 1 || got[0] < "1000" || got[0] > "1500" {
		t.Errorf("at the first message: pushback %q, want 1000 to 1500", got)
	}
}
