package rls

import (
	"math"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/seed-181794aa/ratelimit/tb"
)

// answer is a response with its parts, so that they take few allocations.
type answer struct {
	response  ratelimit.RateLimitResponse
	statuses  []ratelimit.RateLimitResponse_DescriptorStatus
	durations []durationpb.Duration
}

// response returns the answer to the request.
func (c *call) response(allowed bool) *ratelimit.RateLimitResponse {
	n := len(c.entries)
	a := &answer{
		statuses:  make([]ratelimit.RateLimitResponse_DescriptorStatus, n),
		durations: make([]durationpb.Duration, n),
	}
	r := &a.response
	r.Statuses = make([]*ratelimit.RateLimitResponse_DescriptorStatus, n)
	for i := range c.entries {
		r.Statuses[i] = &a.statuses[i]
		c.entries[i].setStatus(r.Statuses[i], &a.durations[i])
	}
	r.OverallCode = ratelimit.RateLimitResponse_OK
	if !allowed && !c.service.Shadow {
		r.OverallCode = ratelimit.RateLimitResponse_OVER_LIMIT
	}
	if c.wantsFields(allowed) {
		r.ResponseHeadersToAdd = c.fields(allowed)
	}
	if c.service.Metadata {
		r.DynamicMetadata = c.metadata()
	}
	return r
}

// setStatus sets the status of a descriptor.
func (e *entry) setStatus(
	s *ratelimit.RateLimitResponse_DescriptorStatus, until *durationpb.Duration,
) {
	s.Code = ratelimit.RateLimitResponse_OK
	switch {
	case e.rule == nil:
		return
	case e.rule.Unlimited:
		s.LimitRemaining = math.MaxUint32
		return
	case !e.isAsked(): // what is left is not known
		return
	}
	s.CurrentLimit = e.rule.limit
	if e.refused() {
		if e.role != shadow {
			s.Code = ratelimit.RateLimitResponse_OVER_LIMIT
		}
	} else {
		s.LimitRemaining = uint32(min(e.remaining(), math.MaxUint32))
	}
	until.Seconds = e.resetSeconds()
	s.DurationUntilReset = until
}

// remaining returns the number of hits for which the bucket has whole tokens, after the hits that
// were taken.
func (e *entry) remaining() float64 {
	hits := hitsOf(e.decision.Remaining, e.rule.Cost)
	if !e.taken && e.decision.Allowed { // the decision counts them as taken
		hits = min(hits+float64(max(e.hits, 1)), hitsOf(e.rule.Limit.Capacity, e.rule.Cost))
	}
	return math.Floor(hits)
}

// precision is more than the relative error of a product or quotient of a decimal cost.
const precision = 0x1p-51

// costOf returns the tokens of hits, and hitsOf the hits that tokens pay. 100 hits of 0.07 tokens
// are not above 7 tokens, and 7 tokens are not below 100 hits.
func costOf(hits uint64, cost float64) float64 { return float64(hits) * cost * (1 - precision) }
func hitsOf(tokens int, cost float64) float64  { return float64(tokens) / cost * (1 + precision) }

// resetSeconds returns the reset in seconds, rounded up, because Envoy reads only the seconds.
func (e *entry) resetSeconds() int64 {
	if e.refused() {
		return e.retry()
	}
	return int64((e.reset() + time.Second - 1) / time.Second)
}

// reset returns the time until the same hits are granted, if the rule refuses them, and otherwise
// until the bucket is full, with an error of less than a token.
func (e *entry) reset() time.Duration {
	switch {
	case e.refused() && e.decision.RetryAfter == tb.Never:
		return neverRetry * time.Second
	case e.refused():
		return e.decision.RetryAfter
	}
	l := e.rule.Limit
	missing := float64(l.Capacity) - e.remaining()*e.rule.Cost
	return time.Duration(min(max(missing, 0)*float64(l.Per)/float64(l.Tokens), float64(tb.Never)/2))
}
