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
		WithHTTPOptions(httplimit.WithExtractor("tenant", func(r *http.Request) string {
			return fmt.Sprint(r.Context().Value(tenant{}), " of ", r.URL.Path)
		})))
	authenticate := func(
		ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
	) (any, error) {
		ctx = httplimit.ContextWithClaims(ctx, map[string]any{"sub": "alice"})
		return handler(context.WithValue(ctx, tenant{}, "blue"), req)
	}
	conn := start(t, &backend{}, append(
		[]grpc.ServerOption{grpc.ChainUnaryInterceptor(authenticate)}, interceptors(l)...))
	wantCode(t, unary(metadata.AppendToOutgoingContext(t.Context(), "X-KEY", "v"), conn), codes.OK)
	seen.want(t, "grpc:method="+unaryMethod+" grpc:service=grpc.testing.TestService "+
		`header:X-Key=v jwt:sub=alice tenant="blue of `+unaryMethod+`"`)
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
	for _, c := range []struct {
		pairs []string
		want  codes.Code
	}{
		{nil, codes.OK},
		{[]string{"key", "a", "KEY", "b"}, codes.InvalidArgument},
		{[]string{"other", "a", "other", "b"}, codes.OK},
		{[]string{"key-bin", "\x00\xff\n,"}, codes.OK},
		{[]string{"key-bin", "a", "key-bin", "b"}, codes.InvalidArgument},
	} {
		wantCode(t, unary(metadata.AppendToOutgoingContext(t.Context(), c.pairs...), conn), c.want)
	}
	seen.want(t, "header:key=a", `header:key-bin="\x00\xff\n,"`, "header:key-bin=a")
}

// The client is the peer of the connection, or the client that a trusted proxy names. The path of a
// Unix socket is not an address, because its client chooses it.
func TestPeerAddress(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	by := func(header string) *Limiter {
		return mustNew(t, rule("[]", 1, ""), WithHTTPOptions(
			httplimit.WithClientAddress(httplimit.ClientAddress{Trusted: proxies, Header: header})))
	}
	l, other := by(""), by("forwarded")
	forwarded := metadata.NewIncomingContext(t.Context(), metadata.MD{
		"x-forwarded-for": {"192.0.2.7, 198.51.100.1"},
		"forwarded":       {`for=192.0.2.7, for="198.51.100.1:5";proto=http`},
	})
	for _, c := range []struct {
		addr           net.Addr
		remote, client string
	}{
		{nil, "", "invalid IP"},
		{&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 5}, "192.0.2.1:5", "192.0.2.1"},
		{&net.TCPAddr{IP: net.ParseIP("fe80::1"), Port: 5, Zone: "a"}, "[fe80::1%a]:5", "fe80::1"},
		{&net.UnixAddr{Name: "@", Net: "unix"}, "", "invalid IP"},
		{&net.UnixAddr{Name: "10.0.0.1:5", Net: "unix"}, "", "invalid IP"},
		{&net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 5}, "10.0.0.1:5", "198.51.100.1"},
		{textAddr("192.0.2.1:5"), "192.0.2.1:5", "192.0.2.1"},
		{textAddr("bufconn"), "bufconn", "invalid IP"},
	} {
		ctx := peer.NewContext(forwarded, &peer.Peer{Addr: c.addr})
		r := newRequest(ctx, unaryMethod)
		a, b := l.ClientAddress(r).String(), other.ClientAddress(r).String()
		if r.RemoteAddr != c.remote || a != c.client || b != c.client {
			t.Errorf("%v: %q, %s, %s, want %q and %s", c.addr, r.RemoteAddr, a, b, c.remote, c.client)
		}
	}
	web := &peer.Peer{Addr: textAddr("10.0.0.1:5"), LocalAddr: &net.UnixAddr{}} // by ServeHTTP
	for _, ctx := range []context.Context{t.Context(), peer.NewContext(t.Context(), web)} {
		if got := peerAddress(ctx); got != "" {
			t.Errorf("without an address: %q", got)
		}
	}
}

// textAddr is an address of a transport that is not of package net.
type textAddr string

func (textAddr) Network() string  { return "" }
func (a textAddr) String() string { return string(a) }

// One limiter limits gRPC calls and HTTP requests by the same buckets.
func TestCallsAndRequestsShareBuckets(t *testing.T) {
	l := mustNew(t, rule(`["header:x-key"]`, 1, ""), standing())
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("X-Key", "a")
	if _, ok := l.Decide(httptest.NewRecorder(), r); !ok {
		t.Error("the request is refused")
	}
	ctx := metadata.NewIncomingContext(t.Context(), metadata.MD{"X-Key": {"a"}})
	_, err := l.admit(newRequest(ctx, unaryMethod))
	wantCode(t, err, codes.ResourceExhausted)
}
