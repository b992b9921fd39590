package rls

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/rand/v2"
	"regexp"
	"time"
	"unicode/utf8"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	xds "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/seed-181794aa/ratelimit/cmd/internal/daemon"
	"github.com/seed-181794aa/ratelimit/internal/compositekey"
	"github.com/seed-181794aa/ratelimit/internal/textfile"
)

// configType is the type of the resources that have a configuration: one domain each.
const configType = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig"

// A pause before a server of xDS is asked again.
const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// pause is the longest time of the next pause, or 0 for firstPause. Each is twice as long as the
// one before, up to lastPause.
type pause time.Duration

// wait pauses for at least half of the time, so that services do not ask together. It returns the
// error of ctx if that is done first.
func (p *pause) wait(ctx context.Context) error {
	most := max(time.Duration(*p), firstPause)
	*p = pause(min(2*most, lastPause))
	timer := time.NewTimer(most/2 + rand.N(most/2))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// A server of xDS may be silent for days. Without pings, a connection whose server is gone without
// a word would stay open. Servers of grpc-go allow a ping every five minutes.
const (
	pingAfter   = 5 * time.Minute
	pingTimeout = 20 * time.Second
)

// follower follows the configuration of servers of xDS, by the state of the world over gRPC.
type follower struct {
	xdsFlags
	reloader *daemon.Reloader // of texts of readFiles

	rejected string // why the last configuration was rejected, or "" if it was accepted
	retry    pause  // before a server gets the answer that it was rejected again
}

// run asks one server after another until ctx is done. While none answers, the configuration stays
// as it is.
func (f *follower) run(ctx context.Context) {
	var reconnect pause
	for i := 0; ; i++ {
		server := f.XDS[i%len(f.XDS)]
		accepted, err := f.follow(ctx, server)
		if ctx.Err() != nil {
			return
		}
		f.reloader.Log.Error("xDS: the configuration stays as it is", "server", server, "error", err)
		if accepted {
			reconnect = 0
		}
		if reconnect.wait(ctx) != nil {
			return
		}
	}
}

// follow connects to a server and applies what it sends, until the connection ends. It reports
// whether a configuration was accepted.
func (f *follower) follow(ctx context.Context, server string) (accepted bool, err error) {
	secure, err := f.credentials(ctx)
	if err != nil {
		return false, err
	}
	conn, err := grpc.NewClient(server, grpc.WithTransportCredentials(secure),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingAfter, Timeout: pingTimeout}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxConfiguration)))
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close() }()
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
	if err != nil {
		return false, err
	}
	return f.receive(ctx, stream)
}

// configurations is the stream of a server.
type configurations interface {
	Send(*discovery.DiscoveryRequest) error
	Recv() (*discovery.DiscoveryResponse, error)
}

// receive applies what a stream has, until it ends. The server learns of each configuration whether
// it was accepted. A server may send a rejected one again at once, so from the second rejection in
// a row on, receive pauses before the server learns of it.
func (f *follower) receive(
	ctx context.Context, stream configurations,
) (accepted bool, err error) {
	ask := &discovery.DiscoveryRequest{Node: &core.Node{Id: f.XDSNode}, TypeUrl: configType}
	for {
		if err := stream.Send(ask); err != nil {
			return accepted, err
		}
		answer, err := stream.Recv()
		if err != nil {
			return accepted, err
		}
		ask.ResponseNonce, ask.ErrorDetail = answer.GetNonce(), nil
		if err := f.reloader.Put(contentOf(answer.GetResources()), "xDS"); err != nil {
			ask.ErrorDetail = &status.Status{Code: int32(codes.InvalidArgument), Message: err.Error()}
			if err := f.reject(ctx, err); err != nil {
				return accepted, err
			}
			continue
		}
		f.rejected, f.retry = "", 0
		accepted, ask.VersionInfo = true, answer.GetVersionInfo()
	}
}

// reject logs a reason, unless it is the reason of the last rejection, and pauses if there was one.
// It returns the error of ctx if that is done first.
func (f *follower) reject(ctx context.Context, reason error) error {
	again := f.rejected != ""
	if reason.Error() != f.rejected {
		f.rejected = reason.Error()
		f.reloader.LogRejected("xDS", reason)
	}
	if !again {
		return nil
	}
	return f.retry.wait(ctx)
}

// maxConfiguration bounds a configuration, in bytes.
const maxConfiguration = 16 << 20

// unprintable matches what a text of JSON may have, but not a text of YAML.
var unprintable = regexp.MustCompile(`[\x{7f}-\x{9f}\x{2028}\x{2029}\x{feff}\x{fffe}\x{ffff}]`)

// asYAML returns text of JSON as text of YAML.
func asYAML(text []byte) []byte {
	return unprintable.ReplaceAllFunc(text, func(b []byte) []byte {
		r, _ := utf8.DecodeRune(b)
		return fmt.Appendf(nil, `\u%04x`, r)
	})
}

// contentOf returns configurations as readFiles returns files.
func contentOf(resources []*anypb.Any) textfile.Content {
	var all []byte
	for _, r := range resources {
		var c xds.RateLimitConfig
		if err := r.UnmarshalTo(&c); err != nil {
			return textfile.Content{Problem: err.Error()}
		}
		name := c.GetName()
		c.Name = "" // it has no effect in a file
		text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(&c)
		if err != nil {
			return textfile.Content{Problem: err.Error()}
		}
		all = compositekey.Append(compositekey.Append(all, name), asYAML(text))
	}
	return textfile.Content{Text: string(all)}
}

// credentials reads the files of TLS for a connection, so that they may change.
func (f *follower) credentials(ctx context.Context) (credentials.TransportCredentials, error) {
	if !f.XDSTLS {
		return insecure.NewCredentials(), nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.XDSCA != "" {
		text, err := textfile.ReadUntil(ctx, f.XDSCA)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM([]byte(text)) {
			return nil, fmt.Errorf("%s: no certificate in PEM", f.XDSCA)
		}
	}
	if f.XDSCert != "" {
		s, err := daemon.LoadSecurity(ctx, f.XDSCert, f.XDSKey, "")
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{*s.Certificate()}
	}
	return credentials.NewTLS(c), nil
}
