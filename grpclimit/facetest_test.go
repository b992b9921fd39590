package grpclimit

import (
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/seed-181794aa/ratelimit/httplimit/facetest"
)

// Calls are let through as requests are.
func TestFace(t *testing.T) {
	statuses := map[codes.Code]int{
		codes.OK: http.StatusOK, codes.ResourceExhausted: http.StatusTooManyRequests,
		codes.InvalidArgument: http.StatusBadRequest,
	}
	open := func(t *testing.T, policy string) func(facetest.Request) facetest.Answer {
		serve := func(_ any, stream grpc.ServerStream) error {
			if err := stream.RecvMsg(&testpb.Empty{}); err != nil {
				return err
			}
			return stream.SendMsg(&testpb.Empty{})
		}
		l := mustNew(t, policy, WithFields())
		conn := start(t, &backend{}, append(interceptors(l), grpc.UnknownServiceHandler(serve)))
		return func(r facetest.Request) facetest.Answer {
			ctx := metadata.NewOutgoingContext(t.Context(), nil)
			for name, values := range r.Header {
				for _, value := range values {
					ctx = metadata.AppendToOutgoingContext(ctx, strings.ToLower(name), value)
				}
			}
			var fields metadata.MD
			err := conn.Invoke(ctx, r.Path, &testpb.Empty{}, &testpb.Empty{}, grpc.Header(&fields))
			answer := facetest.Answer{Status: statuses[status.Code(err)], Header: http.Header{}}
			for name, values := range fields {
				answer.Header[http.CanonicalHeaderKey(name)] = values
			}
			return answer
		}
	}
	facetest.Run(t, facetest.Face{Open: open, WithoutResponses: true})
}
