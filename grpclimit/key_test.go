package grpclimit

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// recorder records the keys of granted and refused calls.
type recorder struct{ keys []string }

func (r *recorder) option() Option {
	record := func(_ *http.Request, e httplimit.Event) {
		r.keys = append(r.keys, httplimit.FormatKey(e.Key))
	}
	return WithHTTPOptions(httplimit.WithHooks(httplimit.Hooks{Granted: record, Refused: record}))
}

func (r *recorder) want(t *testing.T, keys ...string) {
	t.Helper()
	if !slices.Equal(r.keys, keys) {
		t.Errorf("keys\n%s\nwant\n%s", strings.Join(r.keys, "\n"), strings.Join(keys, "\n"))
	}
}

func TestKeysOfACall(t *testing.T) {
	type tenant struct{}
	var seen recorder
	const keys = `["grpc:method", "grpc:service", "header:X-Key", "jwt:sub", "tenant"]`
	l := mustNew(t, rule(keys, 9, ""), seen.option(),
		WithExtractor("tenant", func(ctx context.Context, method string) string {
			return fmt.Sprint(ctx.Value(tenant{}), " of ", method)
		}))
	authenticate := func(
		ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
	) (any, error) {
		ctx = httplimit.ContextWithClaims(ctx, map[string]any{"sub": "alice"})
		return handler(context.WithValue(ctx, tenant{}, "blue"), req)
	}
	conn := start(t, &backend{}, append(
		[]grpc.ServerOption{grpc.ChainUnaryInterceptor(authenticate)}, interceptors(l)...))
	wantCode(t, unary(with(t, "X-KEY", "v"), conn), codes.OK)
	seen.want(t, "grpc:method="+unaryMethod+" grpc:service=grpc.testing.TestService "+
		`header:X-Key=v jwt:sub=alice tenant="blue of `+unaryMethod+`"`)
}

// Claims are read from the bearer token if the policy says so.
func TestUnverifiedClaims(t *testing.T) {
	var seen recorder
	l := mustNew(t, `{"jwt": "unverified", "rules": [`+rule(`["jwt:sub"]`, 9, "")+`]}`, seen.option())
	conn := start(t, &backend{}, interceptors(l))
	wantCode(t, unary(with(t, "authorization", "Bearer e30.eyJzdWIiOiJib2IifQ.x"), conn), codes.OK)
	seen.want(t, "jwt:sub=bob")
}

// Metadata that is there twice is refused, because programs differ in which value they take. Binary
// values are compared byte by byte.
func TestHostileMetadata(t *testing.T) {
	var seen recorder
	l := mustNew(t, `{"rules": [
		{"name": "text", "limit_keys": ["header:key"],
			"algorithm_config": {"tokens_per_second": 1, "burst": 9}},
		{"name": "binary", "limit_keys": ["header:key-bin"],
			"algorithm_config": {"tokens_per_second": 1, "burst": 9}}]}`, seen.option())
	conn := start(t, &backend{}, interceptors(l))
	var many []string
	for i := range 1000 {
		many = append(many, "key", fmt.Sprint(i))
	}
	for _, c := range []struct {
		pairs []string
		want  codes.Code
	}{
		{nil, codes.OK},
		{[]string{"key", "a", "key", "a"}, codes.InvalidArgument},
		{[]string{"key", "a", "KEY", "b"}, codes.InvalidArgument},
		{many, codes.InvalidArgument},
		{[]string{"other", "a", "other", "b"}, codes.OK},
		{[]string{"key-bin", "\x00\xff\n,"}, codes.OK},
		{[]string{"key-bin", "a", "key-bin", "b"}, codes.InvalidArgument},
		{[]string{"key", ""}, codes.OK},
		{[]string{"key", strings.Repeat("x", 4000)}, codes.OK},
	} {
		wantCode(t, unary(with(t, c.pairs...), conn), c.want)
	}
	seen.want(t, "header:key=a", "header:key=a", "header:key=0", `header:key-bin="\x00\xff\n,"`,
		"header:key-bin=a",
		"header:key=sha256:91c9568c40c8d8d1f7a1bd029d124994b3c2a8750c4e4b328ee9b1cf81151d85")
}

// The details of a refusal are valid also if the key is not UTF-8.
func TestRefusalWithABinaryKey(t *testing.T) {
	conn := start(t, &backend{}, interceptors(mustNew(t, rule(`["header:k-bin"]`, 1, ""))))
	for range 2 {
		if err := unary(with(t, "k-bin", "\xff"), conn); err != nil {
			wantCode(t, err, codes.ResourceExhausted)
			if v := violations(err); len(v) != 1 {
				t.Errorf("%q", v)
			}
		}
	}
}

// The client is the peer of the connection, or the client that a trusted proxy names.
func TestAddressOfTheClient(t *testing.T) {
	var seen recorder
	l := mustNew(t, rule(`["ip:address"]`, 9, ""), seen.option(), WithHTTPOptions(
		httplimit.WithClientAddress(httplimit.ClientAddress{
			Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")},
		})))
	for _, from := range []string{"127.0.0.1", "127.0.0.2"} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		dial := grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", address)
		})
		conn := startOn(t, listener, listener.Addr().String(), &backend{}, interceptors(l), dial)
		ctx := with(t, "x-forwarded-for", "192.0.2.7, 198.51.100.1")
		wantCode(t, unary(ctx, conn), codes.OK)
	}
	seen.want(t, "ip:address=127.0.0.1", "ip:address=198.51.100.1")
}

func TestPeerAddress(t *testing.T) {
	l := mustNew(t, rule(`["ip:address"]`, 1, ""))
	for _, c := range []struct {
		addr           net.Addr
		remote, client string
	}{
		{nil, "", "invalid IP"},
		{&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 5}, "192.0.2.1:5", "192.0.2.1"},
		{&net.TCPAddr{IP: net.ParseIP("fe80::1"), Port: 5, Zone: "a"}, "[fe80::1%a]:5", "fe80::1"},
		{&net.UnixAddr{Name: "@", Net: "unix"}, "", "invalid IP"},
		{&net.UnixAddr{Name: "192.0.2.1:5", Net: "unix"}, "", "invalid IP"},
		{textAddr("192.0.2.1:5"), "192.0.2.1:5", "192.0.2.1"},
		{textAddr("bufconn"), "bufconn", "invalid IP"},
	} {
		ctx := peer.NewContext(t.Context(), &peer.Peer{Addr: c.addr})
		r := newRequest(ctx, unaryMethod)
		if a := l.ClientAddress(r).String(); r.RemoteAddr != c.remote || a != c.client {
			t.Errorf("%v: %q and %s, want %q and %s", c.addr, r.RemoteAddr, a, c.remote, c.client)
		}
	}
	if got := peerAddress(t.Context()); got != "" {
		t.Errorf("without a peer: %q", got)
	}
}

// textAddr is an address of a transport that is not of package net.
type textAddr string

func (textAddr) Network() string  { return "" }
func (a textAddr) String() string { return string(a) }

// A client on a Unix socket cannot make itself a trusted proxy by the path of its own socket.
func TestPathOfAUnixSocket(t *testing.T) {
	t.Chdir(t.TempDir())
	listener, err := net.Listen("unix", "server")
	if err != nil {
		t.Skip(err)
	}
	var seen recorder
	l := mustNew(t, rule(`["ip:address"]`, 9, ""), seen.option(), WithHTTPOptions(
		httplimit.WithClientAddress(httplimit.ClientAddress{
			Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		})))
	dial := grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
		return net.DialUnix("unix", &net.UnixAddr{Name: "10.0.0.1:1"}, &net.UnixAddr{Name: "server"})
	})
	conn := startOn(t, listener, "passthrough:unix", &backend{}, interceptors(l), dial)
	wantCode(t, unary(with(t, "x-forwarded-for", "192.0.2.7"), conn), codes.OK)
	seen.want(t, "ip:address=unknown")
}

func TestServiceOfAMethod(t *testing.T) {
	for method, want := range map[string]string{
		"/package.Service/Method": "package.Service", "/a/b/c": "a/b", "/x": "", "": "", "x/y": "x",
	} {
		if got := service(method); got != want {
			t.Errorf("%q: service %q, want %q", method, got, want)
		}
	}
}

// One limiter limits gRPC calls and HTTP requests by the same buckets.
func TestCallsAndRequestsShareBuckets(t *testing.T) {
	l := mustNew(t, rule(`["header:x-key"]`, 2, ""), newClock().option())
	conn := start(t, &backend{}, interceptors(l))
	handler := l.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	get := func() int {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("X-Key", "a")
		handler.ServeHTTP(w, r)
		return w.Code
	}
	wantCode(t, unary(with(t, "x-key", "a"), conn), codes.OK)
	if first, second := get(), get(); first != 200 || second != 429 {
		t.Errorf("status %d and %d, want 200 and 429", first, second)
	}
	wantCode(t, unary(with(t, "x-key", "a"), conn), codes.ResourceExhausted)
}

// The interceptors work without a server, as in a test of an application.
func TestInterceptorWithoutAServer(t *testing.T) {
	l := mustNew(t, rule(`["header:x-key"]`, 1, ""), WithFields(), newClock().option())
	ctx := metadata.NewIncomingContext(t.Context(), metadata.MD{"X-Key": {"a"}})
	call := func() error {
		_, err := l.UnaryServerInterceptor()(ctx, nil, &grpc.UnaryServerInfo{FullMethod: unaryMethod},
			func(context.Context, any) (any, error) { return nil, nil })
		return err
	}
	wantCode(t, call(), codes.OK)
	wantCode(t, call(), codes.ResourceExhausted)
}
