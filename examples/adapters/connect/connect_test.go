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

type text = wrapperspb.StringValue

const procedure = "/acme.v1.Service/Unary"

var (
	idempotent = connect.WithIdempotency(connect.IdempotencyNoSideEffects)
	protocols  = map[string]connect.ClientOption{
		"connect": connect.WithClientOptions(), "connect GET": connect.WithHTTPGet(),
		"gRPC": connect.WithGRPC(), "gRPC-Web": connect.WithGRPCWeb(),
	}
)

func service(l *httplimit.Limiter) http.Handler {
	answer := func(_ context.Context, r *connect.Request[text]) (*connect.Response[text], error) {
		return connect.NewResponse(r.Msg), nil
	}
	return RateLimit(l, connect.NewUnaryHandler(procedure, answer, idempotent))
}

func newClient(
	t *testing.T, protocol connect.ClientOption, opts ...httplimit.Option,
) func() (*connect.Response[text], error) {
	server := httptest.NewUnstartedServer(service(httplimit.PerAddress(1, 1.0/3600, opts...)))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	client := connect.NewClient[text, text](
		server.Client(), server.URL+procedure, protocol, idempotent)
	return func() (*connect.Response[text], error) {
		return client.CallUnary(t.Context(), connect.NewRequest(wrapperspb.String("ping")))
	}
}

// The error of a refused call has the time of Retry-After, which is in whole seconds.
func TestCalls(t *testing.T) {
	down := httplimit.WithStore(facetest.DownStore{Store: httplimit.Memory()})
	for protocol, option := range protocols {
		ping := newClient(t, option)
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
		_, err = newClient(t, option, httplimit.WithFailClosed(), down)()
		if code := connect.CodeOf(err); code != connect.CodeUnavailable {
			t.Errorf("%s: %v from a store that is down", protocol, code)
		}
	}
}

// A client that breaks its body off does not pay less than the estimate. If the limiter replaces
// the body, as with WithUsage, net/http's own request keeps it: the rest would be the next one.
func TestBrokenBody(t *testing.T) {
	l, err := httplimit.New(httplimit.Rules(httplimit.Rule{
		Name: "r", Limit: tb.Limit{Capacity: 9, Tokens: 1, Per: time.Hour}, Keys: []string{"wrap"},
		Cost: httplimit.Cost{Source: "response:status", Statuses: map[string]float64{"4xx": 0, "5xx": 0}},
	}), httplimit.WithExtractor("wrap", func(r *http.Request) string {
		r.Body = io.NopCloser(r.Body)
		return "key"
	}))
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, procedure, iotest.ErrReader(io.ErrUnexpectedEOF))
	r.Header.Set("Content-Type", "application/proto")
	body := r.Body
	service(l).ServeHTTP(httptest.NewRecorder(), r)
	if s := l.Stats()[0]; s.Estimated != 1 || r.Body != body {
		t.Errorf("%d cost the estimate, %d another cost; body %v", s.Estimated, s.Settled, r.Body)
	}
}
