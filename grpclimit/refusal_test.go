package grpclimit

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/proof/facetest"
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
			"algorithm_config": {"tokens_per_second": 0.5, "burst": 3}}]}`, standing())
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
		err := unary(metadata.AppendToOutgoingContext(t.Context(), "x-api-key", c.key), conn)
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

// The details are of the rule that refuses now, also if another one has refused before.
func TestDetailsFollowThePolicy(t *testing.T) {
	l := mustNew(t, rule("[]", 1, ""), standing())
	call := func() error {
		_, err := l.admit(newRequest(t.Context(), unaryMethod))
		return err
	}
	wantCode(t, call(), codes.OK)
	for _, c := range []struct{ policy, want string }{
		{rule("[]", 1, ""), "r 1 (all calls): a burst of 1, then 1 every 1s"},
		{rule("[]", 5, ""), "r 5 (all calls): a burst of 5, then 1 every 1s"},
		{rule(`["grpc:method"]`, 1, ""), "r 1 (grpc:method): a burst of 1, then 1 every 1s"},
	} {
		if err := l.SetPolicy(mustParse(t, c.policy)); err != nil {
			t.Fatal(err)
		}
		call() // granted if the rule is new
		for range 2 {
			if got := violations(call()); !slices.Equal(got, []string{c.want}) {
				t.Errorf("%s: %q, want %q", c.policy, got, c.want)
			}
		}
	}
}

// If no wait helps, the client is told neither a wait nor to retry.
func TestRefusalsWithoutAWait(t *testing.T) {
	for _, c := range []struct {
		policy, message string
		code            codes.Code
		pushback        []string
	}{
		{
			ruleOf("r", `"limit_keys": []`, `, "fixed_cost": 6`),
			"Rule r never has more than 5 tokens. This request costs 6, so it can never fit.",
			codes.ResourceExhausted, []string{noRetry},
		},
		{
			rule(`["header:x-api-key"]`, 1, `"on_missing": "reject"`),
			"Rule r needs header:x-api-key.", codes.InvalidArgument, nil,
		},
	} {
		var trailer metadata.MD
		err := unary(t.Context(), start(t, &backend{}, interceptors(mustNew(t, c.policy))),
			grpc.Trailer(&trailer))
		wantCode(t, err, c.code)
		got := trailer.Get(pushbackField)
		if d := retryDelay(err); d != 0 || !slices.Equal(got, c.pushback) {
			t.Errorf("RetryInfo %v, pushback %q, want 0 and %q", d, got, c.pushback)
		}
		if got := status.Convert(err).Message(); got != c.message {
			t.Errorf("message %q, want %q", got, c.message)
		}
	}
}

// The pushback is the RetryInfo in milliseconds, rounded up.
func TestPushback(t *testing.T) {
	conn := start(t, &backend{}, interceptors(mustNew(t, rule("[]", 1, ""), standing())))
	wantCode(t, unary(t.Context(), conn), codes.OK)
	var trailer metadata.MD
	wait := retryDelay(unary(t.Context(), conn, grpc.Trailer(&trailer)))
	ms := (wait + time.Millisecond - 1).Milliseconds()
	got := trailer.Get(pushbackField)
	if wait == 0 || !slices.Equal(got, []string{strconv.FormatInt(ms, 10)}) {
		t.Errorf("%s %q, want %d for %v", pushbackField, got, ms, wait)
	}
}

// If the store fails, a call passes, or ends with Unavailable if the application wants that. A call
// that has ended has the code of its end.
func TestFailedStore(t *testing.T) {
	down := httplimit.WithStore(facetest.DownStore{Store: httplimit.Memory()})
	open := mustNew(t, rule("[]", 1, ""), WithHTTPOptions(down))
	closed := mustNew(t, rule("[]", 1, ""), WithHTTPOptions(down, httplimit.WithFailClosed()))
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	for ctx, want := range map[context.Context]codes.Code{
		cancelled: codes.Canceled, late: codes.DeadlineExceeded, t.Context(): codes.Unavailable,
	} {
		_, err := open.admit(newRequest(ctx, unaryMethod))
		wantCode(t, err, codes.OK)
		_, err = closed.admit(newRequest(ctx, unaryMethod))
		wantCode(t, err, want)
		wantWait(t, err, 4*time.Second)
	}
}
