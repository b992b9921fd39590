package policy

import (
	"strconv"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Levels returns the rules that a rule stands for: itself, and a rule for each parent network that
// its keys name. The bucket of a parent network has the limit of the network before it, times
// parentFactor.
func (r *Rule) Levels() []Rule {
	levels := []Rule{*r}
	for _, k := range r.Keys {
		bits, ok := PrefixesOf(k)
		if !ok || len(bits) < 2 {
			continue
		}
		parent := *r
		for _, n := range bits[1:] {
			parent.Name = r.Name + "/" + strconv.Itoa(n)
			parent.Limit = times(parent.Limit, parentFactor)
			levels = append(levels, parent)
		}
		return levels // Rule.check allows one key of this kind
	}
	return levels
}

// times returns a limit of n times the tokens. The result is not valid if it is out of range.
func times(l tb.Limit, n int) tb.Limit {
	if l.Validate() != nil || l.Capacity > tb.MaxCapacity/n || l.Tokens > int64(l.Per)/int64(n) {
		return tb.Limit{}
	}
	l.Capacity *= n
	l.Tokens *= int64(n)
	return l
}

// checkParents checks what is said of parent networks in the keys of a rule at path.
func (r *Rule) checkParents(path Path, errs *Problems) {
	first := -1
	for i, k := range r.Keys {
		if !IsAddressKey(k) {
			continue
		}
		keyPath := path.Field("limit_keys").Index(i)
		if _, ok := PrefixesOf(k); !ok {
			errs.Add(keyPath, "must be ip:address, with IPv6 prefixes from long to short if it has any, "+
				"such as ip:address/64,/56,/48 (got %q)", k)
		} else if first >= 0 && r.Keys[first] != k {
			errs.Add(keyPath, "must be the only ip:address (got %q and %q)", r.Keys[first], k)
		} else {
			first = i
		}
	}
	if r.Limit.Validate() != nil {
		return
	}
	for _, parent := range r.Levels()[1:] {
		if parent.Limit.Validate() != nil {
			errs.Add(path.Field("limit_keys"), "have a parent with too high a limit: %s has "+
				"%d times the tokens of the one before it", parent.Name, parentFactor)
			return
		}
	}
}
