package grpclimit

import (
	"io"
	"net/http"
	"slices"
	"sync"

	"google.golang.org/grpc"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// MessageServerInterceptor returns an interceptor that takes tokens for each message that a stream
// receives. A message has the keys and the cost of its stream. If a rule delays a message, RecvMsg
// returns when its tokens may be used. If a rule refuses a message, the stream ends with the
// refusal, whatever its handler returns. The retry policy of a client then repeats the stream only
// if the handler has got no message of it.
//
// A Limiter that has both stream interceptors takes the tokens of the stream and of each message
// from the same buckets. Use two Limiters for two policies.
func (l *Limiter) MessageServerInterceptor() grpc.StreamServerInterceptor {
	return func(
		srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler,
	) error {
		if slices.Contains(l.exempt, info.FullMethod) {
			return handler(srv, stream)
		}
		s := &messageStream{
			ServerStream: stream, l: l, r: newRequest(stream.Context(), info.FullMethod),
		}
		defer func() { _ = s.advance(nil, io.EOF) }() // for a goroutine that still receives
		err := handler(srv, s)
		if refusal := s.advance(nil, nil); refusal != nil {
			return refusal
		}
		return err
	}
}

// messageStream takes tokens for each message that it receives.
type messageStream struct {
	grpc.ServerStream
	l *Limiter
	r *http.Request // of the stream

	begun bool // the handler has got a message; only for RecvMsg

	mu   sync.Mutex // a goroutine may still receive after the handler has returned
	last *httplimit.Settlement
	err  error // of every RecvMsg from now on
}

func (s *messageStream) RecvMsg(m any) error {
	if err := s.advance(nil, nil); err != nil {
		return err
	}
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	_, settlement, refusal := s.l.Take(nil, s.r)
	if refusal != nil {
		// A retry sends all messages again, and each of them takes tokens.
		return s.advance(nil, s.l.refuse(s.r.Context(), refusal, !s.begun))
	}
	s.begun = true
	return s.advance(settlement, nil)
}

// advance ends the work on the last message and begins the next, which may be nil. It returns the
// error that the stream has, now or since an earlier call.
func (s *messageStream) advance(next *httplimit.Settlement, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last.Finish()
	s.last = next
	if err != nil {
		s.err = err
	}
	if s.err != nil {
		s.last.Finish()
	}
	return s.err
}
