package grpclimit

import (
	"context"
	"net"
	"runtime"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
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

// unaryPair returns a call without and a call with an interceptor that grants it.
func unaryPair(t testing.TB, policy string) (bare, limited func()) {
	l := mustNew(t, policy)
	ctx, info := serverContext(), &grpc.UnaryServerInfo{FullMethod: unaryMethod}
	handler := func(context.Context, any) (any, error) { return nil, nil }
	interceptor := l.UnaryServerInterceptor()
	bare = func() { handler(ctx, nil) }
	limited = func() {
		if _, err := interceptor(ctx, nil, info, handler); err != nil {
			t.Fatal(err)
		}
	}
	return bare, limited
}

// messagePair returns a message without and a message with an interceptor that grants it.
func messagePair(t testing.TB, policy string) (bare, limited func()) {
	inner := &countingStream{ctx: serverContext()}
	outer := &messageStream{
		ServerStream: inner, l: mustNew(t, policy), r: newRequest(inner.ctx, inputMethod),
	}
	bare = func() { inner.RecvMsg(nil) }
	limited = func() {
		if err := outer.RecvMsg(nil); err != nil {
			t.Fatal(err)
		}
	}
	return bare, limited
}

func TestAllocationsAreAtMost5(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes sync.Pool drop what it is given")
	}
	_, call := unaryPair(t, twoRules)
	if n := testing.AllocsPerRun(100, call); n > 5 {
		t.Errorf("a unary call with two rules takes %v allocations", n)
	}
	_, call = unaryPair(t, rule(`["ip:address"]`, 1<<20, ""))
	if n := testing.AllocsPerRun(100, call); n > 2 {
		t.Errorf("a unary call with a rule for addresses takes %v allocations", n)
	}
	_, message := messagePair(t, rule(`["ip:address"]`, 1<<20, ""))
	if n := testing.AllocsPerRun(100, message); n > 0 {
		t.Errorf("a message with a rule for addresses takes %v allocations", n)
	}
}

// BenchmarkAdded reports how much two rules add to a unary call and to a message. Calls with and
// without the interceptor take turns.
func BenchmarkAdded(b *testing.B) {
	for name, pair := range map[string]func(testing.TB, string) (func(), func()){
		"unary": unaryPair, "message": messagePair,
	} {
		b.Run(name, func(b *testing.B) {
			const batch = 10_000
			bare, limited := pair(b, twoRules)
			var ns, allocs [2]float64
			for b.Loop() {
				for i, call := range []func(){bare, limited} {
					before, begin := mallocs(), time.Now()
					for range batch {
						call()
					}
					ns[i] += float64(time.Since(begin))
					allocs[i] += float64(mallocs() - before)
				}
			}
			calls := float64(b.N) * batch
			b.ReportMetric((ns[1]-ns[0])/calls, "added-ns/call")
			b.ReportMetric((allocs[1]-allocs[0])/calls, "added-allocs/call")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// mallocs returns how many objects have been allocated.
func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// BenchmarkCall makes unary calls over loopback to a server without the interceptor and to one with
// it, in turns.
func BenchmarkCall(b *testing.B) {
	conns := make([]*grpc.ClientConn, 2)
	for i, opts := range [][]grpc.ServerOption{nil, interceptors(mustNew(b, twoRules))} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		conns[i] = startOn(b, listener, listener.Addr().String(), &backend{}, opts)
	}
	ctx := with(b, "x-api-key", "0123456789abcdef0123456789abcdef")
	var spent [2]time.Duration
	for b.Loop() {
		for i, conn := range conns {
			begin := time.Now()
			wantCode(b, unary(ctx, conn), codes.OK)
			spent[i] += time.Since(begin)
		}
	}
	b.ReportMetric(float64(spent[0])/float64(b.N), "bare-ns/call")
	b.ReportMetric(float64(spent[1])/float64(b.N), "limited-ns/call")
	b.ReportMetric(0, "ns/op")
}

// trailerStream is the stream of a call in a server. Without one, SetTrailer returns an error that
// takes longer than a refusal.
type trailerStream struct{ grpc.ServerTransportStream }

func (trailerStream) SetTrailer(metadata.MD) error { return nil }

// BenchmarkRefused measures refused unary calls, with their status and its details.
func BenchmarkRefused(b *testing.B) {
	l := mustNew(b, rule(`["ip:address"]`, 1, ""), newClock().option())
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
