// Package xdstest has a control plane for tests.
package xdstest

import (
	"errors"
	"net"
	"testing"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// Control is a server of xDS with one client. It stops with the test, and its stream ends when
// Answers is closed.
type Control struct {
	discovery.UnimplementedAggregatedDiscoveryServiceServer
	Asked   chan *discovery.DiscoveryRequest
	Answers chan *discovery.DiscoveryResponse
	Address string
}

// NewControl starts a server on a free port of localhost.
func NewControl(t testing.TB, secure credentials.TransportCredentials) *Control {
	t.Helper()
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &Control{
		Asked:   make(chan *discovery.DiscoveryRequest, 9),
		Answers: make(chan *discovery.DiscoveryResponse), Address: l.Addr().String(),
	}
	s := grpc.NewServer(grpc.Creds(secure))
	discovery.RegisterAggregatedDiscoveryServiceServer(s, c)
	go func() { _ = s.Serve(l) }() // until it is stopped
	t.Cleanup(s.Stop)
	return c
}

// StreamAggregatedResources implements discovery.AggregatedDiscoveryServiceServer.
func (c *Control) StreamAggregatedResources(
	stream discovery.AggregatedDiscoveryService_StreamAggregatedResourcesServer,
) error {
	for {
		asked, err := stream.Recv()
		if err != nil {
			return err
		}
		c.Asked <- proto.CloneOf(asked)
		select {
		case <-stream.Context().Done():
			return nil
		case answer, ok := <-c.Answers:
			if !ok {
				return errors.New("the server ends")
			}
			if err := stream.Send(answer); err != nil {
				return err
			}
		}
	}
}

// Send sends resources, and returns the answer of the client, which must have the nonce.
func (c *Control) Send(
	t testing.TB, version string, resources ...proto.Message,
) (asked *discovery.DiscoveryRequest) {
	t.Helper()
	answer := &discovery.DiscoveryResponse{VersionInfo: version, Nonce: "n" + version}
	for _, resource := range resources {
		r, err := anypb.New(resource)
		if err != nil {
			t.Fatal(err)
		}
		answer.Resources = append(answer.Resources, r)
	}
	c.Answers <- answer
	if asked = <-c.Asked; asked.GetResponseNonce() != answer.GetNonce() {
		t.Errorf("the nonce is %q, want %q", asked.GetResponseNonce(), answer.GetNonce())
	}
	return asked
}
