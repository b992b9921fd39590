// Package connect limits remote procedure calls of the protocols Connect, gRPC and gRPC-Web.
package connect

import (
	"errors"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// RateLimit limits the calls of a handler, before their messages are read. A stream is one call.
// The details of a refusal have the wait of Retry-After. An adaptive rule does not see the errors
// of gRPC, because their HTTP status is 200.
func RateLimit(l *httplimit.Limiter, handler http.Handler) http.Handler {
	errorWriter := connect.NewErrorWriter()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refused := &refusal{ResponseWriter: w}
		_, settlement, granted := l.Admit(refused, r)
		if granted {
			defer settlement.Finish()
			handler.ServeHTTP(settlement.Writer(w), r)
			return
		}
		err := connect.NewError(codes[refused.status], errors.New("the rate limiter refused the call"))
		if wait, e := time.ParseDuration(w.Header().Get("Retry-After") + "s"); e == nil {
			detail, _ := connect.NewErrorDetail(&errdetails.RetryInfo{RetryDelay: durationpb.New(wait)})
			err.AddDetail(detail)
		}
		_ = errorWriter.Write(w, r, err)
	})
}

// codes are those of the statuses with which a limiter refuses.
var codes = map[int]connect.Code{
	400: connect.CodeInvalidArgument, 429: connect.CodeResourceExhausted,
	499: connect.CodeCanceled, 503: connect.CodeUnavailable,
}

// refusal keeps the status of a refusal, and drops its body.
type refusal struct {
	http.ResponseWriter
	status int
}

func (r *refusal) WriteHeader(status int)      { r.status = status }
func (r *refusal) Write(b []byte) (int, error) { return len(b), nil }
