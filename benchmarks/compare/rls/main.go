// Command rls loads a rate limit service of Envoy, for scripts/measure rls. It prints one line with
// its results: decisions a second, the median and the 99th percentile of the latency in µs, and the
// decisions and the grants in all.
//
// Clients send requests over a few connections, each as soon as the answer to the last one has
// come. With -serve it is a service that grants everything, which shows what no service on grpc-go
// can do without.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"slices"
	"sync"
	"time"

	envoy "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

var (
	address     = flag.String("address", "127.0.0.1:8081", "address of the service")
	serve       = flag.Bool("serve", false, "be a service that grants everything")
	key         = flag.String("key", "many", "key of the descriptor, in the domain bench")
	values      = flag.Int("values", 1000, "different values of the descriptor")
	connections = flag.Int("connections", 2, "connections")
	clients     = flag.Int("clients", 64, "requests under way")
	duration    = flag.Duration("duration", 5*time.Second, "duration")
)

func main() {
	log.SetFlags(0)
	flag.Parse()
	if *serve {
		log.Fatal(serveEmpty())
	}
	conns := make([]*grpc.ClientConn, *connections) // until the process ends
	for i := range conns {
		var err error
		conns[i], err = grpc.NewClient(*address,
			grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			log.Fatal(err)
		}
	}
	load(conns)
}

// ask sends a request and reports whether it was granted.
func ask(conn *grpc.ClientConn, r *ratelimit.RateLimitRequest) bool {
	answer, err := ratelimit.NewRateLimitServiceClient(conn).
		ShouldRateLimit(context.Background(), r, grpc.WaitForReady(true))
	if err != nil {
		log.Fatal(err)
	}
	return answer.OverallCode == ratelimit.RateLimitResponse_OK
}

// load sends the requests for the duration, and prints the results.
func load(conns []*grpc.ClientConn) {
	all := make([]*ratelimit.RateLimitRequest, *values)
	for i := range all {
		entry := &envoy.RateLimitDescriptor_Entry{Key: *key, Value: fmt.Sprint("v", i)}
		all[i] = &ratelimit.RateLimitRequest{Domain: "bench", Descriptors: []*envoy.RateLimitDescriptor{
			{Entries: []*envoy.RateLimitDescriptor_Entry{entry}},
		}}
	}
	var (
		mu        sync.Mutex
		latencies []time.Duration
		granted   int
		group     sync.WaitGroup
	)
	begin := time.Now()
	for c := range *clients {
		group.Go(func() {
			var own []time.Duration
			n := 0
			for i := c; time.Since(begin) < *duration; i += *clients {
				sent := time.Now()
				if ask(conns[c%len(conns)], all[i%len(all)]) {
					n++
				}
				own = append(own, time.Since(sent))
			}
			mu.Lock()
			defer mu.Unlock()
			latencies = append(latencies, own...)
			granted += n
		})
	}
	group.Wait()
	took := time.Since(begin)
	slices.Sort(latencies)
	n := len(latencies)
	fmt.Printf("%.0f %d %d %d %d\n",
		float64(n)/took.Seconds(), latencies[n/2].Microseconds(), latencies[n*99/100].Microseconds(),
		n, granted)
}

// empty is a rate limit service that decides nothing. It takes the processor time of grpc-go, of
// the system and of an empty answer.
type empty struct {
	ratelimit.UnimplementedRateLimitServiceServer
}

// ShouldRateLimit implements ratelimit.RateLimitServiceServer.
func (empty) ShouldRateLimit(
	context.Context, *ratelimit.RateLimitRequest,
) (*ratelimit.RateLimitResponse, error) {
	return &ratelimit.RateLimitResponse{OverallCode: ratelimit.RateLimitResponse_OK}, nil
}

// serveEmpty serves until the process is killed. Like tb-rls, it has goroutines that handle one
// request after another.
func serveEmpty() error {
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		return err
	}
	log.Print("listening on ", listener.Addr())
	server := grpc.NewServer(grpc.NumStreamWorkers(64))
	ratelimit.RegisterRateLimitServiceServer(server, empty{})
	return server.Serve(listener)
}
