// Package config reads the configuration of a rate limit service: the YAML of
// github.com/envoyproxy/ratelimit, with a few fields more. It compiles the descriptors into rules,
// and finds the rule of a descriptor.
package config

import (
	"errors"
	"fmt"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Unit is a unit of time.
type Unit = ratelimit.RateLimitResponse_RateLimit_Unit

// File is a file of a configuration. A file has one domain.
type File struct{ Name, Text string }

// Config is a configuration. It is not changed after Parse.
type Config struct {
	Rules    []*Rule
	Warnings []string
	domains  map[string]*Domain
}

// Domain has the rules of a domain.
type Domain struct {
	Name string
	root node
}

// Rule is a descriptor with a limit.
type Rule struct {
	Domain string
	Path   string // keys and values from the top, as in the metrics of envoyproxy/ratelimit
	Place  string // file and line
	ID     string // equal for rules that have the same keys

	Name     string // for Replaces
	Replaces []string

	RequestsPerUnit uint32
	Unit            Unit
	Unlimited       bool
	Limit           tb.Limit // zero if the rule is unlimited, or if it refuses every hit
	Cost            float64  // of a hit, in tokens
	Debt            *bool    // hits are a report of what was used, or not; nil if it is not said

	Shadow, Quota bool
	Metadata      *structpb.Struct // may be nil

	levels  []level
	open    []int // levels whose values are the key
	Dynamic bool  // AppendPath depends on the request
}

// level is one step of a rule's path.
type level struct {
	key    string
	text   string // the value or pattern in the path, or ""
	shared bool   // all values of the pattern share a bucket
	open   bool   // the value is a part of the key
	shown  bool   // the value of the request is a part of the path in metrics
}

// Parse compiles files. The error joins all problems, each with its file and line; the warnings are
// there also with an error. Two files may have the same domain if mergeDomains is set.
func Parse(files []File, mergeDomains bool) (*Config, error) {
	c := &compiler{Config: Config{domains: map[string]*Domain{}}, paths: map[[2]string]string{}}
	for _, f := range files {
		if d := c.parse(f); d != nil {
			c.add(f.Name, d, mergeDomains)
		}
	}
	return &c.Config, errors.Join(c.errs...)
}

// Domain returns a domain, or nil.
func (c *Config) Domain(name string) *Domain { return c.domains[name] }

// Domains returns the number of domains.
func (c *Config) Domains() int { return len(c.domains) }

// periods are the units of time. Months and years have 30 and 365 days, as in
// envoyproxy/ratelimit.
var periods = map[Unit]time.Duration{
	ratelimit.RateLimitResponse_RateLimit_SECOND: time.Second,
	ratelimit.RateLimitResponse_RateLimit_MINUTE: time.Minute,
	ratelimit.RateLimitResponse_RateLimit_HOUR:   time.Hour,
	ratelimit.RateLimitResponse_RateLimit_DAY:    24 * time.Hour,
	ratelimit.RateLimitResponse_RateLimit_WEEK:   7 * 24 * time.Hour,
	ratelimit.RateLimitResponse_RateLimit_MONTH:  30 * 24 * time.Hour,
	ratelimit.RateLimitResponse_RateLimit_YEAR:   365 * 24 * time.Hour,
}

// units has the names of the units, for errors.
const units = "second, minute, hour, day, week, month or year"

// NewLimit returns the limit that refills n tokens a unit. Its capacity is burst, or n if burst is
// 0. Both are reduced to what tb allows: a rate of 10⁹ tokens a second, and tb.MaxCapacity. n must
// not be 0.
func NewLimit(n uint32, u Unit, burst uint32) (tb.Limit, error) {
	per, ok := periods[u]
	if !ok {
		return tb.Limit{}, fmt.Errorf("unit %v: want %s", u, units)
	}
	if burst == 0 {
		burst = n
	}
	l := tb.Limit{
		Capacity: int(min(burst, tb.MaxCapacity)), Tokens: min(int64(n), int64(per)), Per: per,
	}
	return l, l.Validate()
}
