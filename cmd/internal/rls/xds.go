package rls

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
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
)

// configType is the type of the resources that have a configuration: one domain each.
const configType = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig"

// Waits before the next server of xDS is asked. They double until one has sent a configuration.
const (
	firstRetry = time.Second
	lastRetry  = time.Minute
)

// A server of xDS may be silent for days. Without pings, a connection whose server is gone without
// a word would stay open. Servers of grpc-go allow a ping every five minutes.
const (
	pingAfter   = 5 * time.Minute
	pingTimeout = 20 * time.Second
)

// follower follows the configuration of servers of xDS, by the state of the world over gRPC.
type follower struct {
	xdsFlags
	log   *slog.Logger
	apply func(text string) error // of readFiles
}

// run asks one server after another until ctx is done. While none answers, the configuration stays
// as it is.
func (f *follower) run(ctx context.Context) {
	wait := firstRetry
	for i := 0; ; i++ {
		server := f.XDS[i%len(f.XDS)]
		received, err := f.follow(ctx, server)
		if ctx.Err() != nil {
			return
		}
		f.log.Error("xDS: the configuration stays as it is", "server", server, "error", err)
		if received {
			wait = firstRetry
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait/2 + rand.N(wait/2)):
		}
		wait = min(2*wait, lastRetry)
	}
}

// follow applies what a server sends, until the connection ends. It reports whether a configuration
// was accepted. The server learns of each one whether it was.
func (f *follower) follow(ctx context.Context, server string) (received bool, err error) {
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
	ask := &discovery.DiscoveryRequest{Node: &core.Node{Id: f.XDSNode}, TypeUrl: configType}
	for {
		if err := stream.Send(ask); err != nil {
			return received, err
		}
		answer, err := stream.Recv()
		if err != nil {
			return received, err
		}
		text, err := textOf(answer.GetResources())
		if err == nil {
			err = f.apply(text) // it logs its error
		} else {
			f.log.Error("xDS: a configuration cannot be read", "server", server, "error", err)
		}
		ask.ResponseNonce, ask.ErrorDetail = answer.GetNonce(), nil
		if err != nil {
			ask.ErrorDetail = &status.Status{Code: int32(codes.InvalidArgument), Message: err.Error()}
			continue
		}
		received, ask.VersionInfo = true, answer.GetVersionInfo()
	}
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

// textOf returns configurations as readFiles returns files.
func textOf(resources []*anypb.Any) (string, error) {
	var all []byte
	for _, r := range resources {
		var c xds.RateLimitConfig
		if err := r.UnmarshalTo(&c); err != nil {
			return "", err
		}
		name := c.GetName()
		c.Name = "" // a file has none
		text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(&c)
		if err != nil {
			return "", err
		}
		all = compositekey.Append(compositekey.Append(all, name), asYAML(text))
	}
	return string(all), nil
}

// credentials reads the files of TLS for a connection, so that they may change.
func (f *follower) credentials(ctx context.Context) (credentials.TransportCredentials, error) {
	if !f.XDSTLS {
		return insecure.NewCredentials(), nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.XDSCA != "" {
		text, err := daemon.ReadUntil(ctx, f.XDSCA)
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
		own, err := s.Certificate(nil)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{*own}
	}
	return credentials.NewTLS(c), nil
}

// validate returns an error for flags that contradict each other.
func (f *xdsFlags) validate() error {
	switch {
	case (f.XDSCert == "") != (f.XDSKey == ""):
		return errors.New("--xds-cert, --xds-key: want both or neither")
	case !f.XDSTLS && (f.XDSCA != "" || f.XDSCert != ""):
		return errors.New("--xds-ca, --xds-cert: want --xds-tls, too")
	}
	return nil
}
