package main

import (
	"context"
	"log"
	"net"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
)

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
