package connect

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/httplimit/facetest"
	"github.com/seed-181794aa/ratelimit/tb"
)

// The handler of the face has no protocol, so a refusal is an error of Connect over HTTP.
func TestFace(t *testing.T) {
	facetest.Run(t, facetest.HTTP(func(t *testing.T, l *httplimit.Limiter) string {
		return facetest.Serve(t, RateLimit(l, facetest.Application()))
	}))
}

const procedure = "/acme.v1.Service/Unary"

type text = wrapperspb.StringValue

// site is a server with a unary method.
type site struct {
	*httplimit.Limiter
	server *httptest.Server
	calls  int
}

func newSite(t *testing.T, rule httplimit.Rule, opts ...httplimit.Option) *site {
	now := time.Now()
	clock := httplimit.WithLimiterOptions(tb.WithClock(func() time.Time { return now }))
	rule.Name = "calls"
	l, err := httplimit.New(httplimit.Rules(rule), append(opts, clock)...)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{Limiter: l}
	mux := http.NewServeMux()
	mux.Handle(procedure, RateLimit(l, connect.NewUnaryHandler(procedure,
		func(_ context.Context, r *connect.Request[text]) (*connect.Response[text], error) {
			s.calls++
			return connect.NewResponse(r.Msg), nil
		}, connect.WithIdempotency(connect.IdempotencyNoSideEffects))))
	s.server = httptest.NewUnstartedServer(mux)
	s.server.EnableHTTP2 = true
	s.server.StartTLS()
	t.Cleanup(s.server.Close)
	return s
}

var protocols = map[string]connect.ClientOption{
	"connect": connect.WithClientOptions(), "connect GET": connect.WithHTTPGet(),
	"gRPC": connect.WithGRPC(), "gRPC-Web": connect.WithGRPCWeb(),
}

// call makes a unary call.
func (s *site) call(t *testing.T, protocol string) error {
	client := connect.NewClient[text, text](s.server.Client(), s.server.URL+procedure, protocols[protocol],
		connect.WithIdempotency(connect.IdempotencyNoSideEffects))
	response, err := client.CallUnary(t.Context(), connect.NewRequest(wrapperspb.String("ping")))
	if err == nil && response.Msg.Value != "ping" {
		t.Errorf("%s: %s", protocol, response.Msg)
	}
	return err
}

var oneAnHour = tb.Limit{Capacity: 1, Tokens: 1, Per: time.Hour}

func TestCalls(t *testing.T) {
	for protocol := range protocols {
		s := newSite(t, httplimit.Rule{Keys: []string{"ip:address"}, Limit: oneAnHour})
		if err := s.call(t, protocol); err != nil {
			t.Errorf("%s: %v", protocol, err)
		}
		wantRefused(t, s.call(t, protocol))
		if s.calls != 1 {
			t.Errorf("%s: %d calls reached the handler, want 1", protocol, s.calls)
		}
		if t.Failed() {
			t.Fatal(protocol)
		}
	}
}

// wantRefused requires the error of a refused call, with the time of Retry-After, which is in whole
// seconds.
func wantRefused(t *testing.T, err error) {
	t.Helper()
	var e *connect.Error
	if !errors.As(err, &e) || e.Code() != connect.CodeResourceExhausted || len(e.Details()) != 1 {
		t.Errorf("%v, want ResourceExhausted and a detail", err)
		return
	}
	detail, err := e.Details()[0].Value()
	if err != nil {
		t.Error(err)
		return
	}
	wait := detail.(*errdetails.RetryInfo).RetryDelay.AsDuration()
	field, err := time.ParseDuration(e.Meta().Get("Retry-After") + "s")
	if err != nil || (wait-field).Abs() > 2*time.Second || wait < time.Hour-time.Minute {
		t.Errorf("Retry-After: %v, %v, RetryInfo: %v", field, err, wait)
	}
}

// downStore is a store that cannot decide.
type downStore struct{ httplimit.Store }

func (downStore) TakeAll(context.Context, time.Time, []tb.Charge, []tb.Decision) (
	[]tb.Decision, bool, error,
) {
	return nil, false, errors.New("the store is down")
}

func TestFailure(t *testing.T) {
	s := newSite(t, httplimit.Rule{Limit: oneAnHour}, httplimit.WithFailClosed(),
		httplimit.WithStore(downStore{httplimit.Memory()}))
	for protocol := range protocols {
		if code := connect.CodeOf(s.call(t, protocol)); code != connect.CodeUnavailable {
			t.Errorf("%s: %v", protocol, code)
		}
	}
}
