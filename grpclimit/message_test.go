package grpclimit

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

func messageInterceptor(l *Limiter) []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ChainStreamInterceptor(l.MessageServerInterceptor())}
}

// After a refusal no message is received or charged.
func TestReceiveAfterARefusal(t *testing.T) {
	l := mustNew(t, rule("[]", 1, ""), standing())
	inner := &countingStream{ctx: t.Context()}
	err := l.MessageServerInterceptor()(nil, inner, &grpc.StreamServerInfo{FullMethod: inputMethod},
		func(_ any, stream grpc.ServerStream) error {
			wantCode(t, stream.RecvMsg(nil), codes.OK)
			for range 3 {
				wantCode(t, stream.RecvMsg(nil), codes.ResourceExhausted)
			}
			return errors.New("of the handler")
		})
	wantCode(t, err, codes.ResourceExhausted)
	if st := l.Stats()[0]; inner.received != 2 || st.Granted != 1 || st.Refused != 1 {
		t.Errorf("%d received, %d granted, %d refused, want 2, 1, 1",
			inner.received, st.Granted, st.Refused)
	}
}

// countingStream receives messages without end.
type countingStream struct {
	grpc.ServerStream
	ctx      context.Context
	received int
}

func (s *countingStream) Context() context.Context { return s.ctx }
func (s *countingStream) RecvMsg(any) error        { s.received++; return nil }

// A goroutine that still receives when the handler returns gets the end of the stream. Its message
// has no latency.
func TestMessageAfterTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustNew(t, adaptive)
		for range 50 {
			inner := &slowStream{countingStream{ctx: t.Context()}}
			late := make(chan error)
			l.MessageServerInterceptor()(nil, inner, &grpc.StreamServerInfo{FullMethod: inputMethod},
				func(_ any, stream grpc.ServerStream) error {
					go func() { late <- stream.RecvMsg(nil) }()
					synctest.Wait()
					return nil
				})
			if err := <-late; !errors.Is(err, io.EOF) {
				t.Fatalf("a late message: %v, want io.EOF", err)
			}
		}
		if got := rate(l); got < 50 {
			t.Errorf("the limit is %v a second, want at least 50", got)
		}
	})
}

// slowStream receives a message a second.
type slowStream struct{ countingStream }

func (s *slowStream) RecvMsg(m any) error {
	time.Sleep(time.Second)
	return s.countingStream.RecvMsg(m)
}
