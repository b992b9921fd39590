package grpclimit_test

import (
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/seed-181794aa/ratelimit"
	"github.com/seed-181794aa/ratelimit/grpclimit"
	"github.com/seed-181794aa/ratelimit/httplimit"
)

// connect serves the health service on a listener in memory, and returns a client of it.
func connect(server *grpc.Server, opts ...grpc.DialOption) (healthpb.HealthClient, func()) {
	healthpb.RegisterHealthServer(server, health.NewServer())
	listener := bufconn.Listen(1 << 16)
	go server.Serve(listener)
	opts = append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return listener.DialContext(ctx)
		}))
	conn, err := grpc.NewClient("passthrough:memory", opts...)
	if err != nil {
		panic(err)
	}
	return healthpb.NewHealthClient(conn), func() {
		conn.Close()
		server.Stop()
	}
}

const perKey = `{"name": "per-key", "limit_keys": ["header:x-api-key"],
	"algorithm_config": {"tokens_per_second": 1, "burst": 2}}`

func Example() {
	policy, err := httplimit.ParsePolicy([]byte(perKey))
	if err != nil {
		panic(err)
	}
	limiter, err := grpclimit.New(policy)
	if err != nil {
		panic(err)
	}
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(limiter.UnaryServerInterceptor()),
		grpc.ChainStreamInterceptor(limiter.StreamServerInterceptor()),
	)
	client, stop := connect(server)
	defer stop()

	ctx := metadata.AppendToOutgoingContext(context.Background(), "x-api-key", "k1")
	for range 3 {
		_, err := client.List(ctx, &healthpb.HealthListRequest{})
		fmt.Println(status.Code(err))
		for _, detail := range status.Convert(err).Details() {
			switch d := detail.(type) {
			case *errdetails.RetryInfo:
				fmt.Println("retry in less than 2 s:", d.RetryDelay.AsDuration() < 2*time.Second)
			case *errdetails.QuotaFailure:
				fmt.Println("refused by", d.Violations[0].QuotaId)
			}
		}
	}
	// Output:
	// OK
	// OK
	// ResourceExhausted
	// refused by per-key
	// retry in less than 2 s: true
}

func ExamplePerAddress() {
	limiter := grpclimit.PerAddress(20, 10) // each client: bursts of 20 calls, then 10 a second
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(limiter.UnaryServerInterceptor()),
		grpc.ChainStreamInterceptor(limiter.StreamServerInterceptor()),
	)
	client, stop := connect(server)
	defer stop()

	_, err := client.List(context.Background(), &healthpb.HealthListRequest{})
	fmt.Println(status.Code(err))
	// Output:
	// OK
}

func ExampleLimiter_MessageServerInterceptor() {
	calls, err := grpclimit.New(httplimit.Rules(httplimit.Rule{
		Name: "calls", Keys: []string{"ip:address"},
		Limit: ratelimit.Limit{Capacity: 20, Tokens: 10, Per: time.Second},
	}))
	if err != nil {
		panic(err)
	}
	messages, err := grpclimit.New(httplimit.Rules(httplimit.Rule{
		Name: "messages", Keys: []string{"ip:address"},
		Limit: ratelimit.Limit{Capacity: 1000, Tokens: 100, Per: time.Second},
	}))
	if err != nil {
		panic(err)
	}
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(calls.UnaryServerInterceptor()),
		grpc.ChainStreamInterceptor(
			calls.StreamServerInterceptor(), messages.MessageServerInterceptor()),
	)
	client, stop := connect(server)
	defer stop()

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stream, err := client.Watch(ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		panic(err)
	}
	reply, err := stream.Recv()
	fmt.Println(reply.GetStatus(), err)
	fmt.Println(calls.Stats()[0].Granted, "stream and", messages.Stats()[0].Granted, "message")
	// Output:
	// SERVING <nil>
	// 1 stream and 1 message
}

func ExampleUnaryClientInterceptor() {
	// A bucket for each method: calls of a method start 10 ms apart.
	limiter := ratelimit.NewTokenBucket(1, 100)
	wait := func(ctx context.Context, _ *grpc.ClientConn, method string) error {
		return limiter.Wait(ctx, method, 1)
	}
	options := []grpc.DialOption{ // of grpc.NewClient
		grpc.WithChainUnaryInterceptor(grpclimit.UnaryClientInterceptor(wait)),
		grpc.WithChainStreamInterceptor(grpclimit.StreamClientInterceptor(wait)),
	}
	client, stop := connect(grpc.NewServer(), options...)
	defer stop()
	for range 3 {
		_, err := client.List(context.Background(), &healthpb.HealthListRequest{})
		fmt.Println(status.Code(err))
	}
	// Output:
	// OK
	// OK
	// OK
}
