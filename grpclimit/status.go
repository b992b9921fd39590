package grpclimit

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
)

// refusalError returns the error of a refused call or message with this context.
func refusalError(ctx context.Context, refusal *httplimit.Refusal) error {
	code := codes.Unavailable
	switch refusal.Status {
	case http.StatusTooManyRequests:
		code = codes.ResourceExhausted
	case http.StatusBadRequest:
		code = codes.InvalidArgument
	default:
		if err := ctx.Err(); err != nil {
			code = status.FromContextError(err).Code()
		}
	}
	wait, ok := refusal.RetryAfter()
	if !ok {
		wait = tb.Never
	}
	if len(refusal.Violations) > 0 {
		return newError(code, refusal.Detail, wait, quotaFailure(refusal.Violations))
	}
	return newError(code, refusal.Detail, wait)
}

// newError returns an error with these details and, unless no wait helps, the wait.
func newError(
	code codes.Code, text string, wait time.Duration, details ...protoadapt.MessageV1,
) error {
	if wait != tb.Never {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(wait)})
	}
	st, err := status.New(code, text).WithDetails(details...)
	if err != nil { // a text in the details is not UTF-8
		return status.Error(code, text)
	}
	return st.Err()
}

func quotaFailure(violations []httplimit.Violation) *errdetails.QuotaFailure {
	f := &errdetails.QuotaFailure{}
	for i := range violations {
		v := &violations[i]
		f.Violations = append(f.Violations, &errdetails.QuotaFailure_Violation{
			Subject:     subject(v.Key),
			Description: description(v.Limit),
			QuotaId:     v.Rule,
			QuotaValue:  int64(v.Limit.Capacity),
		})
	}
	return f
}

// description returns a limit as text.
func description(l tb.Limit) string {
	b := append(make([]byte, 0, 64), "a burst of "...)
	b = strconv.AppendInt(b, int64(l.Capacity), 10)
	b = strconv.AppendInt(append(b, ", then "...), l.Tokens, 10)
	return string(append(append(b, " every "...), l.Per.String()...))
}

// subject returns the names of a key's parts. Their values may be secrets.
func subject(key []httplimit.KeyPart) string {
	switch len(key) {
	case 0:
		return "all calls"
	case 1:
		return key[0].Name
	}
	names := make([]string, len(key))
	for i := range key {
		names[i] = key[i].Name
	}
	return strings.Join(names, " ")
}

// pushbackField is the trailer with which a server says when a client may retry (gRFC A6).
const pushbackField = "grpc-retry-pushback-ms"

// noRetry is the pushback of a call that a client must not repeat.
const noRetry = "-1"

// setPushback sets the trailer, unless the retry policy of the client decides.
func setPushback(ctx context.Context, pushback string) {
	if pushback != "" { // an error means that the call has ended
		_ = grpc.SetTrailer(ctx, metadata.MD{pushbackField: {pushback}})
	}
}

// pushback returns the milliseconds until a client may retry, rounded up, noRetry if no wait helps,
// or "" if the retry policy of the client decides.
func pushback(refusal *httplimit.Refusal) string {
	switch refusal.Status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
	default:
		return ""
	}
	wait, ok := refusal.RetryAfter()
	if !ok {
		return noRetry
	}
	ms := (wait - 1 + time.Millisecond) / time.Millisecond
	return strconv.FormatInt(int64(ms), 10)
}
