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
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

func messageInterceptor(l *Limiter) []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ChainStreamInterceptor(l.MessageServerInterceptor())}
}

// A stream of 1,000 messages gets its burst and what the rate supplies while it goes on, and not
// one message more. Then it ends with a refusal.
func TestStreamOfThousandMessages(t *testing.T) {
	c, s := newClock(), &backend{}
	s.received = func() error { // 10 ms of work: half a token
		c.move(10 * time.Millisecond)
		return nil
	}
	l := mustNew(t, `{"name": "r", "limit_keys": ["header:x-key"],
		"algorithm_config": {"tokens_per_second": 50, "burst": 100}}`, c.option())
	conn := start(t, s, messageInterceptor(l))
	err := sendMessages(with(t, "x-key", "a"), conn, 1000)
	wantCode(t, err, codes.ResourceExhausted)
	wantWait(t, err, 10*time.Millisecond)
	// 100 tokens and 99 more in the work on 199 messages: half a token is left.
	if n := s.messages.Load(); n != 199 {
		t.Errorf("%d messages reached the handler, want 199", n)
	}
	wantCode(t, sendMessages(with(t, "x-key", "b"), conn, 100), codes.OK)
	if st := l.Stats()[0]; st.Granted != 299 || st.Refused != 1 {
		t.Errorf("%d messages granted and %d refused, want 299 and 1", st.Granted, st.Refused)
	}
}

// A refused message ends its stream with the refusal also if the handler hides the error and
// receives again.
func TestCarelessHandler(t *testing.T) {
	s := &backend{careless: true}
	l := mustNew(t, rule("[]", 3, ""), newClock().option())
	conn := start(t, s, messageInterceptor(l))
	err := sendMessages(t.Context(), conn, 5)
	wantCode(t, err, codes.ResourceExhausted)
	if v := violations(err); len(v) != 1 {
		t.Errorf("violations %q, want one", v)
	}
}

// After a refusal no message is received or charged.
func TestReceiveAfterARefusal(t *testing.T) {
	l := mustNew(t, rule("[]", 1, ""), newClock().option())
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

// The error of a handler, and the end of its messages, pass unchanged.
func TestErrorsOfAStreamPass(t *testing.T) {
	s := &backend{received: func() error { return status.Error(codes.DataLoss, "bad") }}
	conn := start(t, s, messageInterceptor(mustNew(t, rule("[]", 9, ""))))
	wantCode(t, sendMessages(t.Context(), conn, 1), codes.DataLoss)
	wantCode(t, sendMessages(t.Context(), conn, 0), codes.OK)
}

// A rule that delays makes the messages of a stream wait, so that they pass at the rate.
func TestDelayedMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &backend{}
		conn := start(t, s, messageInterceptor(mustNew(t, rule("[]", 1, delayed))))
		begin := time.Now()
		wantCode(t, sendMessages(t.Context(), conn, 20), codes.OK)
		if d := time.Since(begin); d != 19*time.Second {
			t.Errorf("20 messages took %v, want 19 s", d)
		}
	})
}

// A stream that is cancelled while a message waits ends with Canceled.
func TestCancelledMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &backend{}
		l := mustNew(t, rule("[]", 1, delayed))
		conn := start(t, s, messageInterceptor(l))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second/2, cancel)
		wantCode(t, sendMessages(ctx, conn, 2), codes.Canceled)
		synctest.Wait()
		if st := l.Stats()[0]; st.HungUp != 1 || s.messages.Load() != 1 {
			t.Errorf("%d hung up and %d messages, want 1 and 1", st.HungUp, s.messages.Load())
		}
	})
}

// The start of a stream and its messages have limits of their own.
func TestStreamAndMessages(t *testing.T) {
	c, s := newClock(), &backend{}
	calls := mustNew(t, rule("[]", 2, ""), c.option())
	messages := mustNew(t, rule("[]", 5, ""), c.option())
	conn := start(t, s, append(interceptors(calls), messageInterceptor(messages)...))
	wantCode(t, sendMessages(t.Context(), conn, 3), codes.OK)
	wantCode(t, sendMessages(t.Context(), conn, 3), codes.ResourceExhausted)
	wantCode(t, sendMessages(t.Context(), conn, 0), codes.ResourceExhausted)
	if n := s.messages.Load(); n != 5 {
		t.Errorf("%d messages reached the handler, want 5", n)
	}
}

// The latency of a message is the time until its handler receives again, or ends.
func TestMessagesMoveAnAdaptiveRate(t *testing.T) {
	for work, lowers := range map[time.Duration]bool{time.Millisecond: false, time.Second: true} {
		synctest.Test(t, func(t *testing.T) {
			l := mustNew(t, adaptive)
			err := l.MessageServerInterceptor()(nil, &countingStream{ctx: t.Context()},
				&grpc.StreamServerInfo{FullMethod: inputMethod},
				func(_ any, stream grpc.ServerStream) error {
					for range 50 {
						if err := stream.RecvMsg(nil); err != nil {
							return err
						}
						time.Sleep(work)
					}
					return nil
				})
			if err != nil {
				t.Error(err)
			}
			for range 50 { // one message a stream, so only the end of the stream ends its work
				l.MessageServerInterceptor()(nil, &countingStream{ctx: t.Context()},
					&grpc.StreamServerInfo{FullMethod: inputMethod},
					func(_ any, stream grpc.ServerStream) error {
						err := stream.RecvMsg(nil)
						time.Sleep(work)
						return err
					})
				time.Sleep(time.Second - work)
			}
			if rate := l.Stats()[0].Limit; (rateOf(rate.Tokens, rate.Per) < 100) != lowers {
				t.Errorf("after %v of work: the limit is %+v, lower: want %v", work, rate, lowers)
			}
		})
	}
}

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
		if rate := l.Stats()[0].Limit; rateOf(rate.Tokens, rate.Per) < 100 {
			t.Errorf("the limit is %+v, want at least 100 a second", rate)
		}
	})
}

// slowStream receives a message a second.
type slowStream struct{ countingStream }

func (s *slowStream) RecvMsg(m any) error {
	time.Sleep(time.Second)
	return s.countingStream.RecvMsg(m)
}

// Streams take their tokens at the same time, and no token is taken twice.
func TestStreamsShareABucket(t *testing.T) {
	s := &backend{}
	conn := start(t, s, messageInterceptor(mustNew(t, rule("[]", 500, ""), newClock().option())))
	done := make(chan error)
	for range 10 {
		go func() { done <- sendMessages(t.Context(), conn, 100) }()
	}
	refused := 0
	for range 10 {
		if status.Code(<-done) == codes.ResourceExhausted {
			refused++
		}
	}
	if n := s.messages.Load(); n != 500 || refused < 5 {
		t.Errorf("%d messages reached the handler and %d streams were refused, want 500 and 5 or more",
			n, refused)
	}
}

// Messages are counted by the policy's own keys, such as the method.
func TestMessagesOfAMethod(t *testing.T) {
	var seen recorder
	l := mustNew(t, rule(`["grpc:method"]`, 9, ""), seen.option())
	conn := start(t, &backend{}, messageInterceptor(l))
	wantCode(t, sendMessages(t.Context(), conn, 2), codes.OK)
	wantCode(t, unary(t.Context(), conn), codes.OK)
	seen.want(t, "grpc:method="+inputMethod, "grpc:method="+inputMethod)
	stream, err := testpb.NewTestServiceClient(conn).FullDuplexCall(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stream.Send(&testpb.StreamingOutputCallRequest{})
	if _, err := stream.Recv(); err != nil {
		t.Error(err)
	}
	stream.CloseSend()
	stream.Recv()
	if last := httplimit.FormatKey([]httplimit.KeyPart{{Name: MethodKey, Value: duplexMethod}}); len(
		seen.keys) != 3 || seen.keys[2] != last {
		t.Errorf("keys %q, want %s last", seen.keys, last)
	}
}
