package rls

import (
	"fmt"
	"strings"
	"testing"

	envoy "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/seed-181794aa/ratelimit/cmd/internal/rls/config"
	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

func parse(t testing.TB, descriptors string) *config.Config {
	t.Helper()
	c, err := config.Parse([]config.File{{
		Name: "d.yaml", Text: "domain: d\ndescriptors:\n" + descriptors,
	}}, false)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newService returns a service of a domain d with these descriptors, and its clock.
func newService(
	t testing.TB, descriptors string, change ...func(*Config),
) (*Service, *testkit.Clock) {
	t.Helper()
	now := testkit.NewClock()
	c := Config{Now: now.Now, Fields: FieldsOff}
	for _, f := range change {
		f(&c)
	}
	s := New(c)
	if err := s.SetConfig(parse(t, descriptors)); err != nil {
		t.Fatal(err)
	}
	return s, now
}

// descriptor returns a descriptor, given as "k=v,k2=v2".
func descriptor(text string) *envoy.RateLimitDescriptor {
	d := &envoy.RateLimitDescriptor{}
	for part := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(part, "=")
		d.Entries = append(d.Entries, &config.Entry{Key: key, Value: value})
	}
	return d
}

func request(hits uint32, descriptors ...string) *ratelimit.RateLimitRequest {
	r := &ratelimit.RateLimitRequest{Domain: "d", HitsAddend: hits}
	for _, text := range descriptors {
		r.Descriptors = append(r.Descriptors, descriptor(text))
	}
	return r
}

func send(
	t testing.TB, s *Service, r *ratelimit.RateLimitRequest,
) *ratelimit.RateLimitResponse {
	t.Helper()
	answer, err := s.ShouldRateLimit(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// ask sends a request with one hit and returns a short form of the answer.
func ask(t testing.TB, s *Service, descriptors ...string) string {
	t.Helper()
	return short(send(t, s, request(0, descriptors...)))
}

// short returns the overall code, and the code and the remaining hits of each descriptor: - if a
// descriptor has no limit, or was not asked.
func short(r *ratelimit.RateLimitResponse) string {
	text := r.OverallCode.String()
	for _, s := range r.Statuses {
		left := "-"
		if s.CurrentLimit != nil || s.LimitRemaining > 0 {
			left = fmt.Sprint(s.LimitRemaining)
		}
		text += fmt.Sprintf(" %v:%s", s.Code, left)
	}
	return strings.ReplaceAll(text, "OVER_LIMIT", "OVER")
}

func expect(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if g, w := strings.Join(got, "; "), strings.Join(want, "; "); g != w {
		t.Errorf("%s:\n got %s\nwant %s", what, g, w)
	}
}

func limit(key, rest string) string {
	return "- {key: " + key + ", rate_limit: {" + rest + "}}\n"
}
