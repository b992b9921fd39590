package rls

import (
	"fmt"
	"sync"

	envoy "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/rls/config"
)

// maxOverrides bounds the limits that requests bring themselves. Each has a table of buckets.
const maxOverrides = 1000

// overrides has a rule for each limit that a request has brought. It is safe for concurrent use.
type overrides struct {
	service *Service
	mu      sync.RWMutex
	rules   map[override]*rule
	order   []*rule
}

type override struct {
	domain   string
	requests uint32
	unit     config.Unit
}

func newOverrides(s *Service) *overrides {
	return &overrides{service: s, rules: map[override]*rule{}}
}

// rule returns the rule of a descriptor with a limit of its own.
func (o *overrides) rule(
	domain string, l *envoy.RateLimitDescriptor_RateLimitOverride,
) (*rule, error) {
	id := override{domain, l.GetRequestsPerUnit(), config.Unit(l.GetUnit())}
	o.mu.RLock()
	r := o.rules[id]
	o.mu.RUnlock()
	if r != nil {
		return r, nil
	}
	c := &config.Rule{
		Domain: domain, Path: fmt.Sprintf("limit of the request: %d/%v", id.requests, id.unit),
		RequestsPerUnit: id.requests, Unit: id.unit, Cost: 1,
	}
	limit, err := config.NewLimit(max(id.requests, 1), id.unit, 0)
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "limit: %v", err)
	}
	if id.requests > 0 {
		c.Limit = limit
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if r := o.rules[id]; r != nil {
		return r, nil
	}
	if len(o.order) >= maxOverrides {
		return nil, status.Errorf(codes.InvalidArgument,
			"limit: requests have brought %d different limits already", maxOverrides)
	}
	if r, _, err = o.service.newRule(c, nil); err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "limit: %v", err)
	}
	o.rules[id] = r
	o.order = append(o.order, r)
	return r, nil
}

// all calls f with each rule.
func (o *overrides) all(f func(*rule)) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	for _, r := range o.order {
		f(r)
	}
}
