package grpclimit

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
)

// pushbackField is the trailer with which a server says when a client may retry (gRFC A6).
const pushbackField = "grpc-retry-pushback-ms"

// noRetry is the pushback of a call that a client must not repeat.
const noRetry = "-1"

// refuse returns the error of a refused call or message with this context, and sets the pushback of
// the call, unless the retry policy of the client decides. It is noRetry if no wait helps, or if
// the client must not call again.
func (l *Limiter) refuse(ctx context.Context, refusal *httplimit.Refusal, again bool) error {
	wait, ok := refusal.RetryAfter()
	if !ok {
		wait = tb.Never
	}
	var st *status.Status
	switch {
	case refusal.Status == http.StatusTooManyRequests:
		st = l.quotaStatus(refusal)
	case refusal.Status == http.StatusBadRequest:
		st = status.New(codes.InvalidArgument, refusal.Detail)
	case ctx.Err() != nil:
		st = status.New(status.FromContextError(ctx.Err()).Code(), refusal.Detail)
	default:
		st = status.New(codes.Unavailable, refusal.Detail)
	}
	switch refusal.Status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		pushback := noRetry
		if ok && again {
			pushback = strconv.FormatInt(int64((wait-1+time.Millisecond)/time.Millisecond), 10)
		}
		// An error means that the call has ended.
		_ = grpc.SetTrailer(ctx, metadata.MD{pushbackField: {pushback}})
	}
	return withWait(st, wait)
}

// withWait returns the error of a status with the wait as a detail, unless no wait helps.
func withWait(st *status.Status, wait time.Duration) error {
	if wait < tb.Never {
		info := &errdetails.RetryInfo{RetryDelay: durationpb.New(wait)}
		st, _ = st.WithDetails(info) // never fails, because it has no text
	}
	return st.Err()
}

// quota is the status of refusals by one rule.
type quota struct {
	text, rule, subject string
	limit               tb.Limit
	status              *status.Status
}

// quotaStatus returns the status of a refusal by rules, without its wait. The Limiter keeps the
// last one: the next refusal is usually by the same rule, and marshalling details takes long.
func (l *Limiter) quotaStatus(refusal *httplimit.Refusal) *status.Status {
	v := &refusal.Violations[0]
	q := quota{text: refusal.Detail, rule: v.Rule, subject: subject(v.Key), limit: v.Limit}
	single := len(refusal.Violations) == 1
	if last := l.last.Load(); single && last != nil {
		if q.status = last.status; q == *last {
			return q.status
		}
	}
	q.status = status.New(codes.ResourceExhausted, refusal.Detail)
	if with, err := q.status.WithDetails(quotaFailure(refusal.Violations)); err == nil { // UTF-8
		q.status = with
	}
	if single {
		kept := q // a copy, so that a refusal that finds the last one allocates nothing for it
		l.last.Store(&kept)
	}
	return q.status
}

func quotaFailure(violations []httplimit.Violation) *errdetails.QuotaFailure {
	f := &errdetails.QuotaFailure{}
	for i := range violations {
		v := &violations[i]
		f.Violations = append(f.Violations, &errdetails.QuotaFailure_Violation{
			Subject: subject(v.Key),
			Description: fmt.Sprintf("a burst of %d, then %d every %v",
				v.Limit.Capacity, v.Limit.Tokens, v.Limit.Per),
			QuotaId:    v.Rule,
			QuotaValue: int64(v.Limit.Capacity),
		})
	}
	return f
}

// subject returns the names of a key's parts. Their values may be secrets.
func subject(key []httplimit.KeyPart) string {
	names := make([]string, 0, 8)
	for i := range key {
		names = append(names, key[i].Name)
	}
	return cmp.Or(strings.Join(names, " "), "all calls")
}
