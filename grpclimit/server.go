package grpclimit

import (
	"context"
	"net/http"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// UnaryServerInterceptor returns an interceptor that takes the tokens of a unary call. If a rule
// delays the call, the handler is called when its tokens may be used.
func (l *Limiter) UnaryServerInterceptor() grpc.UnaryServerInterceptor {
	return func(
		ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
	) (any, error) {
		s, err := l.admit(newRequest(ctx, info.FullMethod))
		if err != nil {
			return nil, err
		}
		defer s.Finish()
		reply, err := handler(ctx, req)
		if isOverload(ctx, err) {
			s.Cancel()
		}
		return reply, err
	}
}

// StreamServerInterceptor returns an interceptor that takes the tokens of a stream when it starts,
// whatever the number of its messages is.
func (l *Limiter) StreamServerInterceptor() grpc.StreamServerInterceptor {
	return func(
		srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler,
	) error {
		ctx := stream.Context()
		s, err := l.admit(newRequest(ctx, info.FullMethod))
		if err != nil {
			return err
		}
		if s != nil {
			defer s.Finish()
			stream = &answeringStream{stream, s}
		}
		err = handler(srv, stream)
		if isOverload(ctx, err) {
			s.Cancel()
		}
		return err
	}
}

// answeringStream reports the first message to the adaptive rules, as the header of a response.
type answeringStream struct {
	grpc.ServerStream
	settlement *httplimit.Settlement
}

func (s *answeringStream) SendMsg(m any) error {
	s.settlement.ReadHeader(nil)
	return s.ServerStream.SendMsg(m)
}

// admit takes the tokens of a call. It returns the settlement, which is nil if there is nothing to
// settle, or the status with which the call ends.
func (l *Limiter) admit(r *http.Request) (*httplimit.Settlement, error) {
	var fields http.Header
	if l.sendFields {
		fields = http.Header{}
	}
	_, s, refusal := l.Take(fields, r)
	if len(fields) > 0 {
		md := make(metadata.MD, len(fields))
		for name, values := range fields {
			md[strings.ToLower(name)] = values
		}
		_ = grpc.SetHeader(r.Context(), md) // an error means that there is no client any more
	}
	if refusal == nil {
		return s, nil
	}
	if pushback := pushback(refusal); pushback != "" {
		_ = grpc.SetTrailer(r.Context(), metadata.MD{pushbackField: {pushback}})
	}
	return nil, refusalError(r.Context(), refusal)
}

// isOverload reports whether the error of a handler means that the server, or a server behind it,
// is overloaded or down. A client cannot cause it: its own deadline does not count, and neither
// does ResourceExhausted, the code for a message that is too large.
func isOverload(ctx context.Context, err error) bool {
	if err == nil || ctx.Err() != nil {
		return false
	}
	code := status.Code(err)
	return code == codes.Unavailable || code == codes.DeadlineExceeded
}
