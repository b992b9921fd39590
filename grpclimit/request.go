package grpclimit

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// Keys for limit_keys and match, beside the keys of httplimit.
const (
	// MethodKey is the full name of the method, as in "/package.Service/Method".
	MethodKey = "grpc:method"
	// ServiceKey is the name of the service, as in "package.Service".
	ServiceKey = "grpc:service"
)

// newRequest returns the HTTP/2 request that carries a call, without its header.
func newRequest(ctx context.Context, method string) *http.Request {
	// One allocation for both. http.Request has no other way to set its context than a copy.
	r := &struct {
		http.Request
		url url.URL
	}{Request: *new(http.Request).WithContext(ctx), url: url.URL{Path: method}}
	r.Method, r.Proto, r.ProtoMajor = http.MethodPost, "HTTP/2.0", 2
	r.URL, r.RemoteAddr = &r.url, peerAddress(ctx)
	return &r.Request
}

// peerAddress returns the address of the peer, or "" if there is none. A client on a Unix socket
// has none, because it chooses the path that the server sees: "10.0.0.1:1" is a path, too.
func peerAddress(ctx context.Context) string {
	p, ok := peer.FromContext(ctx)
	if !ok || p.Addr == nil {
		return ""
	}
	if _, isUnix := p.LocalAddr.(*net.UnixAddr); isUnix { // by grpc.Server.ServeHTTP, Addr is text
		return ""
	}
	switch addr := p.Addr.(type) {
	case *net.TCPAddr: // in one allocation, where its String takes three
		a := addr.AddrPort()
		return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()).String()
	case *net.UnixAddr:
		return ""
	}
	return p.Addr.String()
}

// header returns the values of a header field: metadata of a call, whose keys are compared without
// regard to case, or a field of an HTTP request that the embedded Limiter decides.
func header(r *http.Request, name string) []string {
	if r.Header != nil {
		return r.Header[name]
	}
	return metadata.ValueFromIncomingContext(r.Context(), name)
}

// service returns the name of the service in the full name of a method.
func service(method string) string {
	name := strings.TrimPrefix(method, "/")
	return name[:max(0, strings.LastIndexByte(name, '/'))]
}
