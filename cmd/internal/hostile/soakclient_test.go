package hostile

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	envoy "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/seed-181794aa/ratelimit/outbound"
	"github.com/seed-181794aa/ratelimit/tb"
)

// request is what a client asks for. A client without a tenant is always above its limit, or waits
// for its turn.
type request struct {
	client, tenant string
	inTurn         bool
}

// client sends one request at a time. After close it connects again.
type client interface {
	ask(ctx context.Context, r request) (granted bool, err error)
	close()
}

// httpClient is a client of tb-proxy.
type httpClient struct {
	url string
	http.Client
}

// newHTTPClient returns a client that speaks HTTP/2 or HTTP/1.1, without TLS if that is nil.
func newHTTPClient(address string, tls *tls.Config, http2 bool) *httpClient {
	c := &httpClient{url: "http://" + address}
	transport := &http.Transport{Protocols: new(http.Protocols), TLSClientConfig: tls.Clone()}
	transport.Protocols.SetHTTP1(!http2)
	transport.Protocols.SetHTTP2(http2)
	if tls != nil {
		c.url = "https://" + address
	}
	c.Transport = transport
	return c
}

func (c *httpClient) ask(ctx context.Context, r request) (bool, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return false, err
	}
	q.Header.Set("X-Forwarded-For", r.client)
	if r.tenant != "" {
		q.Header.Set("X-Tenant", r.tenant)
	}
	resp, err := c.Do(q)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return false, err
	}
	switch resp.StatusCode {
	case http.StatusOK:
		return true, nil
	case http.StatusTooManyRequests:
		return false, nil
	}
	return false, statusError(resp.StatusCode)
}

func (c *httpClient) close() { c.CloseIdleConnections() }

// fleet is the number of clients that wait for their turn at a tb-proxy.
const fleet = 20

// newFleet returns a client that package outbound lets wait, below the limits of each client in all
// versions. Its bucket pays what it takes while the clock of Redis, which is set back, stands
// still.
func newFleet(address string, tls *tls.Config) *httpClient {
	c := newHTTPClient(address, tls, false)
	rule := outbound.Rule{
		Name: "client", Limit: tb.Limit{Capacity: 3, Tokens: 1, Per: 2 * time.Second},
		Key: func(r *http.Request) string { return r.Header.Get("X-Forwarded-For") },
	}
	c.Transport = outbound.New(c.Transport, outbound.Rules(rule), outbound.Margin(time.Second))
	return c
}

// errInTurn is that a server has refused a client that has waited for its turn.
var errInTurn = errors.New("refused in its turn")

// statusError is a status of HTTP that no limit explains.
type statusError int

func (e statusError) Error() string { return fmt.Sprint("status ", int(e)) }

// grpcClient is a client of tb-rls.
type grpcClient struct {
	address string
	tls     *tls.Config      // nil without TLS
	conn    *grpc.ClientConn // nil after close
}

func (c *grpcClient) connect() (err error) {
	security := insecure.NewCredentials()
	if c.tls != nil {
		security = credentials.NewTLS(c.tls)
	}
	c.conn, err = grpc.NewClient(c.address, grpc.WithTransportCredentials(security),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, MaxDelay: time.Second,
			},
			MinConnectTimeout: time.Second,
		}))
	return err
}

func (c *grpcClient) ask(ctx context.Context, r request) (bool, error) {
	if c.conn == nil {
		if err := c.connect(); err != nil {
			return false, err
		}
	}
	descriptor := func(key, value string) *envoy.RateLimitDescriptor {
		return &envoy.RateLimitDescriptor{
			Entries: []*envoy.RateLimitDescriptor_Entry{{Key: key, Value: value}},
		}
	}
	all := []*envoy.RateLimitDescriptor{descriptor("client", r.client)}
	if r.tenant != "" {
		all = append(all, descriptor("tenant", r.tenant))
	}
	answer, err := ratelimit.NewRateLimitServiceClient(c.conn).ShouldRateLimit(ctx,
		&ratelimit.RateLimitRequest{Domain: "soak", Descriptors: all})
	return answer.GetOverallCode() == ratelimit.RateLimitResponse_OK, err
}

func (c *grpcClient) close() {
	if c.conn != nil {
		_ = c.conn.Close() // no request is under way
		c.conn = nil
	}
}

// The kinds of errors. Others are named by their status.
const (
	refused   = "refused"   // nothing listens on the address
	lost      = "lost"      // the connection broke off before the answer
	timeout   = "timeout"   // no answer
	undecided = "undecided" // the server has not heard from Redis in time
	inTurn    = "in turn"   // errInTurn, which no event explains
)

// kindOf returns the kind of an error.
func kindOf(err error) string {
	message := status.Convert(err).Message()
	switch code := statusError(0); {
	case errors.As(err, &code) && code == http.StatusServiceUnavailable:
		return undecided
	case code != 0:
		return code.Error()
	case errors.Is(err, errInTurn):
		return inTurn
	case errors.Is(err, syscall.ECONNREFUSED), strings.Contains(message, "connection refused"):
		return refused
	case os.IsTimeout(err), status.Code(err) == codes.DeadlineExceeded:
		return timeout
	case strings.Contains(message, "cannot decide"):
		return undecided
	case status.Code(err) == codes.Unavailable, status.Code(err) == codes.Unknown:
		return lost
	}
	return status.Code(err).String()
}

// An event explains errors of some kinds only, so each error has the right one.
func TestKindsOfErrors(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{statusError(503), undecided},
		{statusError(502), "status 502"},
		{errInTurn, inTurn},
		{fmt.Errorf("dial: %w", syscall.ECONNREFUSED), refused},
		{fmt.Errorf("read: %w", syscall.ECONNRESET), lost},
		{fmt.Errorf("Get: %w", io.EOF), lost},
		{errors.New("http2: server sent GOAWAY and closed the connection"), lost},
		{context.DeadlineExceeded, timeout},
		{status.Error(codes.DeadlineExceeded, "context deadline exceeded"), timeout},
		{status.Error(codes.Unavailable, "the rate limiter cannot decide"), undecided},
		{status.Error(codes.Unavailable, "dial tcp: connect: connection refused"), refused},
		{status.Error(codes.Unavailable, "error reading from server: EOF"), lost},
		{status.Error(codes.InvalidArgument, "domain: want a name"), "InvalidArgument"},
	} {
		if got := kindOf(c.err); got != c.want {
			t.Errorf("%v is %s, want %s", c.err, got, c.want)
		}
	}
}
