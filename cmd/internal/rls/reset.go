package rls

import (
	"context"
	"fmt"

	"github.com/seed-181794aa/ratelimit/cmd/internal/rls/config"
	"github.com/seed-181794aa/ratelimit/httplimit"
)

// Reset makes the bucket of a descriptor full. label is the domain, a slash and the path of the
// rule, and key is the descriptor as httplimit.FormatKey writes it.
func (s *Service) Reset(label, key string) error {
	parts, isKey := httplimit.ParseKey(key)
	var entries []*config.Entry
	for _, p := range parts {
		entries = append(entries, &config.Entry{Key: p.Name, Value: p.Value})
	}
	t := s.state.Load()
	var found *rule
	t.all(func(r *rule) {
		applies := r.ID == "" || t.config.Domain(r.Domain).Match(entries) == r.Rule
		if isKey && applies && r.Domain+"/"+r.Path == label && !r.isFixed() {
			found = r
		}
	})
	if found == nil {
		return fmt.Errorf("%w: no rule %s limits the descriptor %s", httplimit.ErrNoBucket, label, key)
	}
	bucket, _ := config.EntriesKey(entries, nil)
	if found.ID != "" {
		bucket, _ = found.Key(entries, nil)
	}
	return found.buckets.StoreLimiter.(httplimit.Resetter).Reset(context.Background(), bucket)
}
