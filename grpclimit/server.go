package grpclimit

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc"
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
		readStatus(s, err)
		return reply, err
	}
}

// StreamServerInterceptor returns an interceptor that takes the tokens of a stream when it starts,
// whatever the number of its messages is.
func (l *Limiter) StreamServerInterceptor() grpc.StreamServerInterceptor {
	return func(
		srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler,
	) error {
		s, err := l.admit(newRequest(stream.Context(), info.FullMethod))
		if err != nil {
			return err
		}
		if s == nil {
			return handler(srv, stream)
		}
		answering := &answeringStream{ServerStream: stream, settlement: s}
		defer answering.settle(s.Finish)
		err = handler(srv, answering)
		answering.settle(func() { readStatus(s, err) })
		return err
	}
}

// answeringStream reports the first message to the adaptive rules, as the header of a response.
type answeringStream struct {
	grpc.ServerStream
	settlement *httplimit.Settlement
	mu         sync.Mutex // a goroutine may still send after the handler has returned
}

func (s *answeringStream) SendMsg(m any) error {
	s.settle(func() { s.settlement.ReadHeader(nil) })
	return s.ServerStream.SendMsg(m)
}

// settle runs a step of the settlement. One step runs at a time.
func (s *answeringStream) settle(step func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	step()
}

// admit takes the tokens of a call. It returns the settlement, which is nil if there is nothing to
// settle, or the status with which the call ends.
func (l *Limiter) admit(r *http.Request) (*httplimit.Settlement, error) {
	if slices.Contains(l.exempt, r.URL.Path) {
		return nil, nil
	}
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
		// An error means that an outer interceptor has sent the header, or that the call has ended.
		_ = grpc.SetHeader(r.Context(), md)
	}
	if refusal != nil {
		return nil, l.refuse(r.Context(), refusal, true)
	}
	return s, nil
}

// readStatus reads the code of a call whose handler has returned. If the context of the call has
// ended, the client has left: the deadline of a call is the client's.
func readStatus(s *httplimit.Settlement, err error) {
	st, ok := status.FromError(err)
	if !ok { // a server makes the status in the same way
		st = status.FromContextError(err)
	}
	s.ReadStatus(code.Code(st.Code()).String())
}
