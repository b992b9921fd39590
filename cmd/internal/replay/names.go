package replay

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// resolveTime is how long the look-up of names takes at most.
const resolveTime = 5 * time.Second

// resolver looks up names and addresses in the DNS, as net.Resolver does.
type resolver interface {
	LookupAddr(ctx context.Context, address string) (names []string, err error)
	LookupHost(ctx context.Context, name string) (addresses []string, err error)
}

// addNames adds the names of the refused clients that the report lists, also after an interrupt,
// with which a replay that follows a log ends. A client without a name keeps none, and a network
// has none.
func (rep *Report) addNames(ctx context.Context, r resolver) {
	part := slices.Index(rep.KeyParts, "ip")
	if part < 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resolveTime)
	defer cancel()
	var lookups sync.WaitGroup
	if rep.Policy != nil {
		for _, rule := range rep.Policy.Rules {
			for i := range rule.Top {
				k := &rule.Top[i]
				lookups.Go(func() { k.Name = domainName(ctx, r, k.address) })
			}
		}
	}
	addTo := func(top []TopKey) {
		for i := range top {
			k := &top[i]
			lookups.Go(func() { k.Name = domainName(ctx, r, k.Key[part]) })
		}
	}
	addTo(rep.Top)
	if s := rep.Suggestion; s != nil && s.Limit != nil {
		for i := range s.Limit.Top {
			c := &s.Limit.Top[i]
			lookups.Go(func() { c.Name = domainName(ctx, r, c.Key[part]) })
		}
		if s.Check != nil {
			addTo(s.Check.Top)
		}
	}
	lookups.Wait()
}

// domainName returns the name of an address. The owner of an address can give it any name, so a
// name counts only if it leads back to the address.
func domainName(ctx context.Context, r resolver, address string) string {
	names, _ := r.LookupAddr(ctx, address)
	for _, name := range names {
		if back, _ := r.LookupHost(ctx, name); slices.Contains(back, address) {
			return strings.TrimSuffix(name, ".")
		}
	}
	return ""
}
