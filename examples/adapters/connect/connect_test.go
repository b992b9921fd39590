package connect

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/iotest"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/proof/facetest"
	"github.com/seed-181794aa/ratelimit/tb"
)

// The handler of the face has no protocol, so a refusal is an error of Connect over HTTP.
func TestFace(t *testing.T) {
	facetest.Run(t, facetest.HTTP(func(t *testing.T, l *httplimit.Limiter) string {
		return facetest.Serve(t, RateLimit(l, facetest.Application()))
	}))
}

// A client that breaks its body off does not pay less than the estimate.
func TestBrokenBody(t *testing.T) {
	p, err := httplimit.ParsePolicy([]byte(`{"name": "r", "limit_keys": [], "algorithm_config": {
		"rps": 1, "burst": 9, "cost_source": "response:status", "status_costs": {"4xx": 0}}}`))
	if err != nil {
		t.Fatal(err)
	}
	l, err := httplimit.New(p)
	if err != nil {
		t.Fatal(err)
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusBadRequest)
	})
	body := iotest.ErrReader(io.ErrUnexpectedEOF)
	RateLimit(l, handler).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/", body))
	if s := l.Stats()[0]; s.Estimated != 1 {
		t.Errorf("%d responses cost the estimate, %d another cost", s.Estimated, s.Settled)
	}
}

type text = wrapperspb.StringValue

var protocols = map[string]connect.ClientOption{
	"connect": connect.WithClientOptions(), "connect GET": connect.WithHTTPGet(),
	"gRPC": connect.WithGRPC(), "gRPC-Web": connect.WithGRPCWeb(),
}

// newClient returns a client of a service that answers one call in an hour.
func newClient(
	t *testing.T, protocol connect.ClientOption, opts ...httplimit.Option,
) *connect.Client[text, text] {
	l := httplimit.PerAddress(1, 1.0/3600, opts...)
	const procedure = "/acme.v1.Service/Unary"
	answer := func(_ context.Context, r *connect.Request[text]) (*connect.Response[text], error) {
		return connect.NewResponse(r.Msg), nil
	}
	idempotent := connect.WithIdempotency(connect.IdempotencyNoSideEffects)
	handler := RateLimit(l, connect.NewUnaryHandler(procedure, answer, idempotent))
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return connect.NewClient[text, text](server.Client(), server.URL+procedure, protocol, idempotent)
}

// The error of a refused call has the time of Retry-After, which is in whole seconds.
func TestCalls(t *testing.T) {
	for protocol, option := range protocols {
		client := newClient(t, option)
		ping := func() (*connect.Response[text], error) {
			return client.CallUnary(t.Context(), connect.NewRequest(wrapperspb.String("ping")))
		}
		if response, err := ping(); err != nil || response.Msg.Value != "ping" {
			t.Errorf("%s: %v, %v", protocol, response, err)
		}
		_, err := ping()
		var e *connect.Error
		if !errors.As(err, &e) || e.Code() != connect.CodeResourceExhausted || len(e.Details()) != 1 {
			t.Fatalf("%s: %v, want ResourceExhausted and a detail", protocol, err)
		}
		detail, err := e.Details()[0].Value()
		if err != nil {
			t.Fatal(err)
		}
		wait := detail.(*errdetails.RetryInfo).RetryDelay.AsDuration()
		field, err := time.ParseDuration(e.Meta().Get("Retry-After") + "s")
		if err != nil || (wait-field).Abs() > 2*time.Second || wait < time.Hour-time.Minute {
			t.Errorf("%s: Retry-After %v, RetryInfo %v, %v", protocol, field, wait, err)
		}
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
	for protocol, option := range protocols {
		client := newClient(t, option, httplimit.WithFailClosed(),
			httplimit.WithStore(downStore{httplimit.Memory()}))
		_, err := client.CallUnary(t.Context(), connect.NewRequest(wrapperspb.String("ping")))
		if code := connect.CodeOf(err); code != connect.CodeUnavailable {
			t.Errorf("%s: %v", protocol, code)
		}
	}
}
