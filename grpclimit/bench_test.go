//go:build !race

// The race detector makes sync.Pool drop what it is given, and slows the code down.

package grpclimit

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

const twoRules = `{"rules": [
	{"name": "address", "limit_keys": ["ip:address"],
		"algorithm_config": {"tokens_per_second": 1e9, "burst": 1073741824}},
	{"name": "key", "limit_keys": ["header:x-api-key"],
		"algorithm_config": {"tokens_per_second": 1e9, "burst": 1073741824}}]}`

// serverContext returns the context of a call as a server has it, with the usual metadata.
func serverContext() context.Context {
	ctx := metadata.NewIncomingContext(context.Background(), metadata.MD{
		":authority": {"api.example.com"}, "content-type": {"application/grpc"},
		"user-agent": {"grpc-go/1.84.0"}, "grpc-accept-encoding": {"gzip"},
		"x-request-id": {"4f3c1b"}, "x-api-key": {"0123456789abcdef0123456789abcdef"},
	})
	return peer.NewContext(ctx, &peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 5}})
}

// granted returns a unary call and a message that an interceptor grants.
func granted(t testing.TB, policy string) (unary, message func()) {
	l := mustNew(t, policy)
	ctx, info := serverContext(), &grpc.UnaryServerInfo{FullMethod: unaryMethod}
	handler := func(context.Context, any) (any, error) { return nil, nil }
	interceptor := l.UnaryServerInterceptor()
	stream := &messageStream{
		ServerStream: &countingStream{ctx: ctx}, l: l, r: newRequest(ctx, inputMethod),
	}
	unary = func() {
		if _, err := interceptor(ctx, nil, info, handler); err != nil {
			t.Fatal(err)
		}
	}
	message = func() {
		if err := stream.RecvMsg(nil); err != nil {
			t.Fatal(err)
		}
	}
	return unary, message
}

func TestAllocations(t *testing.T) {
	two, _ := granted(t, twoRules)
	unary, message := granted(t, rule(`["ip:address"]`, 1<<20, ""))
	for name, c := range map[string]struct {
		call func()
		most float64
	}{"call, two rules": {two, 5}, "call": {unary, 2}, "message": {message, 0}} {
		if n := testing.AllocsPerRun(100, c.call); n > c.most {
			t.Errorf("%s: %v allocations, want at most %v", name, n, c.most)
		}
	}
}

// BenchmarkGranted measures two rules on a unary call, and on a message.
func BenchmarkGranted(b *testing.B) {
	unary, message := granted(b, twoRules)
	for name, call := range map[string]func(){"unary": unary, "message": message} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				call()
			}
		})
	}
}

// trailerStream is the stream of a call in a server. Without one, SetTrailer returns an error that
// takes longer than a refusal.
type trailerStream struct{ grpc.ServerTransportStream }

func (trailerStream) SetTrailer(metadata.MD) error { return nil }

// BenchmarkRefused measures refused unary calls, with their status and its details.
func BenchmarkRefused(b *testing.B) {
	l := mustNew(b, rule(`["ip:address"]`, 1, ""), standing())
	ctx, info := serverContext(), &grpc.UnaryServerInfo{FullMethod: unaryMethod}
	ctx = grpc.NewContextWithServerTransportStream(ctx, trailerStream{})
	handler := func(context.Context, any) (any, error) { return nil, nil }
	interceptor := l.UnaryServerInterceptor()
	interceptor(ctx, nil, info, handler)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := interceptor(ctx, nil, info, handler); err == nil {
			b.Fatal("granted")
		}
	}
}
