package grpclimit

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed-181794aa/ratelimit/tb"
)

// WaitFunc takes the tokens of a call that a client is about to make, and returns when they may be
// used. It calls Wait of a ratelimit.Bucket, or of a ratelimit.Limiter with a key of its choice:
// the method, the target of the connection or a value in the context. It must be safe for
// concurrent use.
type WaitFunc func(ctx context.Context, cc *grpc.ClientConn, method string) error

// UnaryClientInterceptor returns an interceptor that waits before each unary call. A call waits
// once, also if the retry policy of the client sends it several times. A timeout in the service
// config begins after the wait.
//
// If the tokens come after the deadline of its context, the call ends at once with DeadlineExceeded
// and is not sent. If no wait helps, or too many calls wait, it ends with ResourceExhausted. If the
// limiter fails, it ends with Unavailable. An error with a status stays as it is.
func UnaryClientInterceptor(wait WaitFunc) grpc.UnaryClientInterceptor {
	return func(
		ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
		invoker grpc.UnaryInvoker, opts ...grpc.CallOption,
	) error {
		if err := wait(ctx, cc, method); err != nil {
			return waitError(err)
		}
		return invoker(ctx, method, req, reply, cc, opts...)
	}
}

// StreamClientInterceptor is UnaryClientInterceptor for the start of streams. Their messages do not
// wait.
func StreamClientInterceptor(wait WaitFunc) grpc.StreamClientInterceptor {
	return func(
		ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
		streamer grpc.Streamer, opts ...grpc.CallOption,
	) (grpc.ClientStream, error) {
		if err := wait(ctx, cc, method); err != nil {
			return nil, waitError(err)
		}
		return streamer(ctx, desc, cc, method, opts...)
	}
}

// waitError returns the error of a call for an error of a WaitFunc.
func waitError(err error) error {
	var wait *tb.WaitError
	switch _, isStatus := status.FromError(err); {
	case isStatus:
		return err
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return status.FromContextError(err).Err()
	case !errors.As(err, &wait):
		return status.Error(codes.Unavailable, err.Error())
	}
	return withWait(status.New(codes.ResourceExhausted, err.Error()), wait.Wait)
}
