package rls

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	"github.com/seed-181794aa/ratelimit/cmd/internal/daemon"
)

// Bounds on a connection. A call that is too large is an error, with which Envoy lets the request
// pass. So a call may have more than clients can send to Envoy: by default 60 KiB of header fields,
// which each descriptor may have, and of which a tracer passes tracestate on in the call's header.
// The bound of that header is the one of grpc, 16 MiB.
const (
	connectTimeout = 10 * time.Second // for the handshakes
	maxMessage     = 16 << 20         // bytes of a request
)

// streamWorkers is how many goroutines handle requests one after another. Each further request gets
// a goroutine of its own, whose stack has to grow for every request.
const streamWorkers = 64

// server serves a service by gRPC, with health checks and reflection.
type server struct {
	*grpc.Server
	listener net.Listener
	health   *healthServer
	stopped  context.Context
	stop     context.CancelFunc
}

// newServer returns a server. secure may be nil. The log must be throttled.
func newServer(
	l net.Listener, s *Service, m *metrics, f connectionFlags, secure *daemon.Security,
	log *slog.Logger,
) *server {
	r := &server{listener: l, health: newHealthServer()}
	r.stopped, r.stop = context.WithCancel(context.Background())
	options := []grpc.ServerOption{
		grpc.ConnectionTimeout(connectTimeout),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxConcurrentStreams(f.MaxStreams),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle: f.MaxIdle, MaxConnectionAge: f.MaxAge, MaxConnectionAgeGrace: f.MaxAgeGrace,
			Time: f.KeepaliveTime, Timeout: f.KeepaliveTimeout,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
			MinTime: f.KeepaliveMin, PermitWithoutStream: true,
		}),
		grpc.ChainUnaryInterceptor(recoverPanics(log), m.time), grpc.StreamInterceptor(r.endStream),
		grpc.ForceServerCodecV2(newCodec(s.requestRepaired)),
		grpc.WaitForHandlers(true), grpc.NumStreamWorkers(streamWorkers),
	}
	if secure != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(secure.ServerConfig("h2"))))
	}
	r.Server = grpc.NewServer(options...)
	ratelimit.RegisterRateLimitServiceServer(r.Server, s)
	grpc_health_v1.RegisterHealthServer(r.Server, r.health)
	reflection.Register(r.Server)
	return r
}

// recoverPanics returns an interceptor that logs a panic of a handler on one line, and answers with
// an error.
func recoverPanics(log *slog.Logger) grpc.UnaryServerInterceptor {
	return func(
		ctx context.Context, r any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
	) (answer any, err error) {
		defer func() {
			if v := recover(); v != nil {
				log.Error("panic", "method", info.FullMethod, "panic", fmt.Sprint(v),
					"stack", string(debug.Stack()))
				answer, err = nil, status.Error(codes.Internal, "the server has a fault")
			}
		}()
		return handler(ctx, r)
	}
}

// endStream is an interceptor of streams, of health checks and of reflection. A client may keep one
// open, and GracefulStop would wait for it. So it ends when the server stops.
func (s *server) endStream(
	service any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler,
) error {
	ended := make(chan error, 1)
	go func() { ended <- handler(service, stream) }()
	select {
	case err := <-ended:
		return err
	case <-s.stopped.Done():
		return status.Error(codes.Unavailable, "the service stops")
	}
}

// Start implements daemon.Stoppable.
func (s *server) Start(failed chan<- error) {
	go func() {
		if err := s.Serve(s.listener); err != nil {
			failed <- err
		}
	}()
}

// Stop implements daemon.Stoppable. Health checks learn of the stop at once.
func (s *server) Stop(delay, grace time.Duration) error {
	s.health.Shutdown()
	time.Sleep(delay)
	done := make(chan struct{})
	go func() {
		s.stop()
		s.GracefulStop()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-time.After(grace):
		s.Server.Stop()
		<-done
		return context.DeadlineExceeded
	}
}

// healthServer is the health service of grpc.
type healthServer struct{ *health.Server }

// newHealthServer returns a server that reports the server as serving, and the rate limit service
// under its own name and under the name that envoyproxy/ratelimit gives it.
func newHealthServer() *healthServer {
	h := &healthServer{health.NewServer()}
	h.set(true)
	return h
}

// set sets whether the service can decide requests.
func (h *healthServer) set(ready bool) {
	s := grpc_health_v1.HealthCheckResponse_NOT_SERVING
	if ready {
		s = grpc_health_v1.HealthCheckResponse_SERVING
	}
	for _, name := range []string{
		"", ratelimit.RateLimitService_ServiceDesc.ServiceName, upstreamName,
	} {
		h.SetServingStatus(name, s)
	}
}
