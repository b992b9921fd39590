package grpclimit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
)

// violations returns the quotas in the details of an error as text.
func violations(err error) (all []string) {
	for _, d := range status.Convert(err).Details() {
		if f, ok := d.(*errdetails.QuotaFailure); ok {
			for _, v := range f.Violations {
				all = append(all, fmt.Sprintf("%s %d (%s): %s",
					v.QuotaId, v.QuotaValue, v.Subject, v.Description))
			}
		}
	}
	return all
}

// retryDelay returns the RetryInfo of an error, or 0 if there is none.
func retryDelay(err error) time.Duration {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok {
			return info.RetryDelay.AsDuration()
		}
	}
	return 0
}

// wantWait fails the test unless the error asks the client to wait for as long, with up to half of
// it as jitter.
func wantWait(t *testing.T, err error, want time.Duration) {
	t.Helper()
	if got := retryDelay(err); got < want || got > want+want/2 {
		t.Errorf("RetryInfo %v, want %v to %v", got, want, want+want/2)
	}
}

// A refused call has the wait and the rules that refuse in its details, and does not reach its
// handler.
func TestRefusedCall(t *testing.T) {
	s := &backend{}
	l := mustNew(t, `{"rules": [
		{"name": "key", "limit_keys": ["header:x-api-key", "ip:address"],
			"algorithm_config": {"tokens_per_second": 0.1, "burst": 2}},
		{"name": "all", "limit_keys": [],
			"algorithm_config": {"tokens_per_second": 0.5, "burst": 3}}]}`, newClock().option())
	conn := start(t, s, interceptors(l))
	const keyRule = "key 2 (header:x-api-key ip:address): a burst of 2, then 1 every 10s"
	const allRule = "all 3 (all calls): a burst of 3, then 1 every 2s"
	for i, c := range []struct {
		key  string
		want []string
	}{
		{"secret", nil}, {"secret", nil}, {"secret", []string{keyRule}}, {"other", nil},
		{"secret", []string{keyRule, allRule}},
	} {
		err := unary(with(t, "x-api-key", c.key), conn)
		if got := violations(err); !slices.Equal(got, c.want) {
			t.Errorf("call %d: %q, want %q", i+1, got, c.want)
		}
		if c.want == nil {
			wantCode(t, err, codes.OK)
			continue
		}
		wantCode(t, err, codes.ResourceExhausted)
		wantWait(t, err, 10*time.Second)
		const want = "Rule key has too few tokens left for this request, which costs 1."
		if got := status.Convert(err).Message(); got != want {
			t.Errorf("message %q, want %q", got, want)
		}
	}
	if n := s.calls.Load(); n != 3 {
		t.Errorf("%d calls reached the handler, want 3", n)
	}
}

// If no wait helps, the client is told neither a wait nor to retry.
func TestCallThatCanNeverFit(t *testing.T) {
	conn := start(t, &backend{}, interceptors(mustNew(t, `{"name": "r", "limit_keys": [],
		"algorithm_config": {"tokens_per_second": 1, "burst": 2, "fixed_cost": 3}}`)))
	var trailer metadata.MD
	err := unary(t.Context(), conn, grpc.Trailer(&trailer))
	wantCode(t, err, codes.ResourceExhausted)
	if d := retryDelay(err); d != 0 {
		t.Errorf("RetryInfo %v, want none", d)
	}
	if got := trailer.Get(pushbackField); !slices.Equal(got, []string{"-1"}) {
		t.Errorf("%s %q, want -1", pushbackField, got)
	}
}

// The pushback is the RetryInfo in milliseconds, rounded up.
func TestPushback(t *testing.T) {
	conn := start(t, &backend{}, interceptors(mustNew(t, rule("[]", 1, ""), newClock().option())))
	wantCode(t, unary(t.Context(), conn), codes.OK)
	var trailer metadata.MD
	err := unary(t.Context(), conn, grpc.Trailer(&trailer))
	stream, streamErr := testpb.NewTestServiceClient(conn).FullDuplexCall(t.Context())
	if streamErr != nil {
		t.Fatal(streamErr)
	}
	_, streamErr = stream.Recv()
	for _, c := range []struct {
		err     error
		trailer metadata.MD
	}{{err, trailer}, {streamErr, stream.Trailer()}} {
		wait := retryDelay(c.err)
		ms := wait.Milliseconds()
		if wait%time.Millisecond > 0 {
			ms++
		}
		got := c.trailer.Get(pushbackField)
		if wait == 0 || !slices.Equal(got, []string{strconv.FormatInt(ms, 10)}) {
			t.Errorf("%s %q, want %d for %v", pushbackField, got, ms, wait)
		}
	}
}

const retryPolicy = `{"methodConfig": [{"name": [{}], "retryPolicy": {
	"maxAttempts": 2, "initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1,
	"retryableStatusCodes": ["RESOURCE_EXHAUSTED"]}}]}`

// A client with a retry policy waits as long as the server says, and is then served.
func TestRetryPolicyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &backend{}
		conn := start(t, s, interceptors(mustNew(t, rule("[]", 1, ""))),
			grpc.WithDefaultServiceConfig(retryPolicy))
		wantCode(t, unary(t.Context(), conn), codes.OK)
		begin := time.Now()
		wantCode(t, unary(t.Context(), conn), codes.OK)
		if d := time.Since(begin); d < time.Second || d > 1500*time.Millisecond {
			t.Errorf("the second call took %v, want 1 s to 1.5 s", d)
		}
		if n := s.calls.Load(); n != 2 {
			t.Errorf("%d calls, want 2", n)
		}
	})
}

// A call that ends before it is decided has the code of its end.
func TestEndOfACall(t *testing.T) {
	down := httplimit.WithStore(downStore{httplimit.Memory()})
	l := mustNew(t, rule("[]", 1, ""), WithHTTPOptions(down, httplimit.WithFailClosed()))
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	for ctx, want := range map[context.Context]codes.Code{
		cancelled: codes.Canceled, late: codes.DeadlineExceeded, t.Context(): codes.Unavailable,
	} {
		_, err := l.admit(newRequest(ctx, unaryMethod))
		wantCode(t, err, want)
	}
}

// A client does not retry a refusal with fields, because they are header metadata.
func TestRetryPolicyWithFields(t *testing.T) {
	l := mustNew(t, rule("[]", 1, ""), newClock().option(), WithFields())
	conn := start(t, &backend{}, interceptors(l), grpc.WithDefaultServiceConfig(retryPolicy))
	wantCode(t, unary(t.Context(), conn), codes.OK)
	wantCode(t, unary(t.Context(), conn), codes.ResourceExhausted)
	if st := l.Stats()[0]; st.Refused != 1 {
		t.Errorf("%d attempts were refused, want 1", st.Refused)
	}
}

// A call without a key that a rule insists on is the client's mistake, and no wait helps.
func TestMissingKey(t *testing.T) {
	s := &backend{}
	conn := start(t, s, interceptors(mustNew(t,
		rule(`["header:x-api-key"]`, 1, `"on_missing": "reject"`))))
	var trailer metadata.MD
	err := unary(t.Context(), conn, grpc.Trailer(&trailer))
	wantCode(t, err, codes.InvalidArgument)
	if d := status.Convert(err).Details(); len(d) > 0 || len(trailer.Get(pushbackField)) > 0 {
		t.Errorf("details %v, trailer %v", d, trailer)
	}
	const want = "Rule r needs header:x-api-key."
	if got := status.Convert(err).Message(); got != want {
		t.Errorf("message %q, want %q", got, want)
	}
	if n := s.calls.Load(); n != 0 {
		t.Errorf("%d calls reached the handler", n)
	}
}

// downStore is a store that cannot decide.
type downStore struct{ httplimit.Store }

func (downStore) TakeAll(context.Context, time.Time, []tb.Charge, []tb.Decision) (
	[]tb.Decision, bool, error,
) {
	return nil, false, errors.New("the store is down")
}

// A call passes if the store fails, or is refused with Unavailable if the application wants that.
func TestFailedLimiter(t *testing.T) {
	down := httplimit.WithStore(downStore{httplimit.Memory()})
	policy := rule("[]", 1, "")
	open := start(t, &backend{}, interceptors(mustNew(t, policy, WithHTTPOptions(down))))
	wantCode(t, unary(t.Context(), open), codes.OK)
	closed := start(t, &backend{}, interceptors(mustNew(t, policy,
		WithHTTPOptions(down, httplimit.WithFailClosed()))))
	err := unary(t.Context(), closed)
	wantCode(t, err, codes.Unavailable)
	wantWait(t, err, 4*time.Second)
	if v := violations(err); v != nil {
		t.Errorf("%q", v)
	}
}
