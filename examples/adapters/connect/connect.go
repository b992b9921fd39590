// Package connect limits remote procedure calls of the protocols Connect, gRPC and gRPC-Web.
package connect

import (
	"errors"
	"net/http"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// RateLimit limits the calls of a handler, before their messages are read. A stream is one call.
//
// Its policy should have no adaptive rule. A client with a short timeout causes a 504, and only
// unary calls of Connect have errors with another HTTP status than 200.
func RateLimit(l *httplimit.Limiter, handler http.Handler) http.Handler {
	errorWriter := connect.NewErrorWriter()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(r.Context()) // net/http looks for what is left in the Body of its own
		_, settlement, refusal := l.Take(w.Header(), r)
		if refusal == nil {
			defer settlement.Finish()
			handler.ServeHTTP(settlement.Writer(w), settlement.Request(r))
			return
		}
		err := connect.NewError(codes[refusal.Status], errors.New(refusal.Detail))
		if wait, ok := refusal.RetryAfter(); ok {
			info := &errdetails.RetryInfo{RetryDelay: durationpb.New(wait)}
			detail, _ := connect.NewErrorDetail(info)
			err.AddDetail(detail)
		}
		_ = errorWriter.Write(w, r, err)
	})
}

var codes = map[int]connect.Code{
	400: connect.CodeInvalidArgument, 429: connect.CodeResourceExhausted,
	425: connect.CodeUnavailable, 499: connect.CodeCanceled, 503: connect.CodeUnavailable,
}
