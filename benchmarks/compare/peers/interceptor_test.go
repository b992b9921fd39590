package peers

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/ratelimit"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/seed-181794aa/ratelimit/grpclimit"
	"github.com/seed-181794aa/ratelimit/tb"
)

// byAddress is a limiter for the interceptor of go-grpc-middleware, which has none of its own.
type byAddress func(address string) bool

var errTooMany = errors.New("too many calls")

func (allow byAddress) Limit(ctx context.Context) error {
	p, _ := peer.FromContext(ctx)
	host, _, err := net.SplitHostPort(p.Addr.String())
	if err == nil && !allow(host) {
		err = errTooMany
	}
	return err
}

// transport is the stream of a call in a server, without which SetTrailer fails.
type transport struct{ grpc.ServerTransportStream }

func (transport) SetTrailer(metadata.MD) error { return nil }

// BenchmarkInterceptor measures unary calls of one address through a limit of 1 or 10⁹ tokens an
// hour. The limiter in go-grpc-middleware is x/time/rate in a sync.Map; its refusals have no wait.
func BenchmarkInterceptor(b *testing.B) {
	ctx := peer.NewContext(context.Background(),
		&peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 4711}})
	ctx = grpc.NewContextWithServerTransportStream(ctx, transport{})
	info := &grpc.UnaryServerInfo{FullMethod: "/bench.Service/Call"}
	handler := func(context.Context, any) (any, error) { return nil, nil }
	interceptors := []struct {
		name  string
		limit func(n int) grpc.UnaryServerInterceptor
	}{
		{"grpclimit", func(n int) grpc.UnaryServerInterceptor {
			return grpclimit.PerAddress(n, float64(n)/3600).UnaryServerInterceptor()
		}},
		{"go-grpc-middleware", func(n int) grpc.UnaryServerInterceptor {
			limit := tb.Limit{Capacity: n, Tokens: int64(n), Per: time.Hour}
			return ratelimit.UnaryServerInterceptor(byAddress(xtimeSyncMap(limit, 0)))
		}},
	}
	for _, c := range []struct {
		name  string
		limit int
		want  codes.Code
	}{{"granted", 1e9, codes.OK}, {"refused", 1, codes.ResourceExhausted}} {
		for _, i := range interceptors {
			b.Run(c.name+"/"+i.name, func(b *testing.B) {
				call := i.limit(c.limit)
				_, err := call(ctx, nil, info, handler)
				b.ReportAllocs()
				for b.Loop() {
					_, err = call(ctx, nil, info, handler)
				}
				if got := status.Code(err); got != c.want {
					b.Fatalf("%v, want %v", got, c.want)
				}
			})
		}
	}
}
