package grpclimit

import (
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/proof/facetest"
	"github.com/seed-181794aa/ratelimit/tb/redis"
)

// Calls are let through as requests are.
func TestFace(t *testing.T) {
	facetest.Run(t, facetest.Face{Redis: true, Without: facetest.HeaderAndBody, Open: func(
		t *testing.T, policy, address string,
	) func(facetest.Request) facetest.Answer {
		options := []Option{WithFields()}
		if address != "" {
			o := rueidis.ClientOption{InitAddress: []string{address}, DisableCache: true}
			client, err := rueidis.NewClient(o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(client.Close)
			store, err := redis.NewStore(client, redis.WithTimeout(time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			options = append(options,
				WithHTTPOptions(httplimit.WithStore(store), httplimit.WithTimeout(0)))
		}
		interceptors := interceptors(mustNew(t, policy, options...))
		conn := start(t, &backend{}, append(interceptors, grpc.UnknownServiceHandler(echoEmpty)))
		return func(r facetest.Request) facetest.Answer { return send(t, conn, r) }
	}})
}

func echoEmpty(_ any, stream grpc.ServerStream) error {
	if err := stream.RecvMsg(&testpb.Empty{}); err != nil {
		return err
	}
	for code, text := range statuses {
		if slices.Equal(metadata.ValueFromIncomingContext(stream.Context(), facetest.Status),
			[]string{strconv.Itoa(text)}) {
			return status.Error(code, "")
		}
	}
	return stream.SendMsg(&testpb.Empty{})
}

// statuses has the statuses of httplimit and of the application.
var statuses = map[codes.Code]int{
	codes.OK: http.StatusOK, codes.ResourceExhausted: http.StatusTooManyRequests,
	codes.InvalidArgument: http.StatusBadRequest, codes.Unauthenticated: http.StatusUnauthorized,
	codes.NotFound: http.StatusNotFound,
}

// send makes a call of a request, and an answer of its code and header.
func send(t *testing.T, conn *grpc.ClientConn, r facetest.Request) facetest.Answer {
	sent, fields := metadata.MD{}, metadata.MD{}
	for name, values := range r.Header {
		sent.Append(name, values...)
	}
	ctx := metadata.NewOutgoingContext(t.Context(), sent)
	err := conn.Invoke(ctx, r.Path, &testpb.Empty{}, &testpb.Empty{}, grpc.Header(&fields))
	answer := facetest.Answer{Status: statuses[status.Code(err)], Header: http.Header{}}
	for name, values := range fields {
		answer.Header[http.CanonicalHeaderKey(name)] = values
	}
	return answer
}
