package rls

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	envoy "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed-181794aa/ratelimit/cmd/internal/rls/config"
)

// maxOverrides bounds the limits that requests bring themselves. Each has a table of buckets. A new
// one takes the place of one that no request has brought for so long that its buckets are full.
const maxOverrides = 1000

// overrides has a rule for each limit that a request has brought. It is safe for concurrent use.
type overrides struct {
	service *Service
	mu      sync.RWMutex
	rules   map[override]*brought
	order   []*brought
}

type override struct {
	domain   string
	requests uint32
	unit     config.Unit
}

// brought is the rule of an override.
type brought struct {
	*rule
	id   override
	last atomic.Int64 // when a request has brought it, in Unix seconds
}

// isFull reports whether all buckets of the rule are full: they are after its unit, which begins
// when the debts are paid.
func (b *brought) isFull(now int64) bool {
	from := b.last.Load()
	if b.buckets != nil {
		from = max(from, b.buckets.paid.Load())
	}
	return float64(now-from) > b.Limit.Per.Seconds()
}

// rule returns the rule of a descriptor with a limit of its own.
func (o *overrides) rule(
	domain string, l *envoy.RateLimitDescriptor_RateLimitOverride,
) (*rule, error) {
	id := override{domain, l.GetRequestsPerUnit(), config.Unit(l.GetUnit())}
	now := o.service.Now().Unix()
	o.mu.RLock()
	b := o.rules[id]
	if b != nil && b.last.Load() != now { // under the lock, so that it is not forgotten
		b.last.Store(now)
	}
	o.mu.RUnlock()
	if b != nil {
		return b.rule, nil
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
	if b := o.rules[id]; b != nil {
		return b.rule, nil
	}
	if len(o.order) >= maxOverrides && !o.forget(now) {
		return nil, status.Errorf(codes.InvalidArgument,
			"limit: requests have brought %d different limits already", maxOverrides)
	}
	r, err := o.service.newRule(c, nil)
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "limit: %v", err)
	}
	b = &brought{rule: r, id: id}
	b.last.Store(now)
	o.rules[id] = b
	o.order = append(o.order, b)
	return r, nil
}

// forget removes a rule with nothing but full buckets, and reports whether there was one.
func (o *overrides) forget(now int64) bool {
	i := slices.IndexFunc(o.order, func(b *brought) bool { return b.isFull(now) })
	if i < 0 {
		return false
	}
	delete(o.rules, o.order[i].id)
	o.order = slices.Delete(o.order, i, i+1)
	return true
}

// all calls f with each rule.
func (o *overrides) all(f func(*rule)) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	for _, b := range o.order {
		f(b.rule)
	}
}
