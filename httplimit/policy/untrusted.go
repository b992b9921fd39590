package policy

import (
	"slices"
	"strings"

	"github.com/seed-181794aa/ratelimit/tb"
)

// invented warns of the first key with a value that a client can choose.
func (w *warner) invented(r *Rule, path Path) {
	const why = "is chosen by the client, which can send another value each time or none: " +
		"without a rule for ip:address or [] beside it, such a client has no limit"
	for i, k := range r.Keys {
		keyPath := path.Field("limit_keys").Index(i)
		if isNarrow(k) {
			w.Add(keyPath, "is chosen by the client, which usually has a whole /64 of IPv6: without a "+
				"rule for ip:address or [] beside it, such a client has no limit (got %q)", k)
			return
		}
		if w.isInvented(k) {
			w.Add(keyPath, why)
			return
		}
	}
	for k := range r.sortedMatch() {
		if w.isInvented(k) {
			w.Add(path.Field("match").Field(k), why)
			return
		}
	}
}

// raised warns of a match with which a client chooses a limit above the one that its ladder has for
// all requests.
func (w *warner) raised(s *RuleSet, r *Rule, path Path) {
	if s.Evaluation != Ladders || !s.enforces(r) {
		return
	}
	keys := slices.Sorted(slices.Values(CanonicalKeys(r.Keys)))
	for i := range s.Rules {
		b := &s.Rules[i]
		if !s.alwaysApplies(*b) || !isAbove(r.Limit, b.Limit) ||
			!slices.Equal(keys, slices.Sorted(slices.Values(CanonicalKeys(b.Keys)))) {
			continue
		}
		for k := range r.sortedMatch() {
			if w.isInvented(k) {
				w.Add(path.Field(k), "is chosen by the client, which so has this limit instead of the "+
					"lower one of %s", b.Name)
				return
			}
		}
	}
}

// tiers warns of a key with which a client chooses a limit above the limit of the rule.
func (w *warner) tiers(s *RuleSet, r *Rule, path Path) {
	if !s.enforces(r) || !w.isInvented(r.Tiers.By) {
		return
	}
	for _, name := range r.Tiers.Names() {
		if isAbove(r.Tiers.Limits[name], r.Limit) {
			w.Add(path.Field("algorithm_config").Field("tiers").Field("by"),
				"is chosen by the client, which so has the limit of %s instead of the lower one of the rule"+
					" (got %q)", name, r.Tiers.By)
			return
		}
	}
}

func isAbove(a, b tb.Limit) bool {
	rate := func(l tb.Limit) float64 { return float64(l.Tokens) / float64(l.Per) }
	return a.Capacity > b.Capacity || rate(a) > rate(b)
}

func (w *warner) isInvented(key string) bool {
	kind, _, ok := strings.Cut(key, ":")
	return ok && (kind == "header" || kind == "query" || kind == "cookie" ||
		kind == "jwt" && w.policy.UnverifiedJWT)
}
