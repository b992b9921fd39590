package policy

import (
	"slices"
	"strconv"
	"strings"

	"github.com/seed-181794aa/ratelimit/tb"
)

const (
	addressKey = "ip:address"

	// parentFactor is how many times the limit of a network a parent network has. A /48
	// has 256 networks of a /56, but seldom as many clients.
	parentFactor = 4
)

// PrefixesOf returns the lengths of the IPv6 prefixes in a key such as ip:address/64,/56,/48. It
// returns none for ip:address, and reports false if the key is neither.
func PrefixesOf(key string) (bits []int, ok bool) {
	list, hasPrefixes := strings.CutPrefix(key, addressKey+"/")
	if !hasPrefixes {
		return nil, key == addressKey
	}
	before := 129
	for text := range strings.SplitSeq(list, ",/") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n >= before || strconv.Itoa(n) != text {
			return nil, false
		}
		bits, before = append(bits, n), n
	}
	return bits, true
}

// IsAddressKey reports whether a key is ip:address with or without prefixes, valid or not.
func IsAddressKey(key string) bool {
	return key == addressKey || strings.HasPrefix(key, addressKey+"/")
}

// CanonicalKey returns the same spelling for all spellings of a key. Upper and lower case are the
// same in the names of header fields, and nowhere else.
func CanonicalKey(key string) string {
	if name, ok := strings.CutPrefix(key, "header:"); ok {
		return "header:" + strings.ToLower(name)
	}
	return key
}

// CanonicalKeys returns the canonical spelling of each key.
func CanonicalKeys(keys []string) []string {
	keys = slices.Clone(keys)
	for i, k := range keys {
		keys[i] = CanonicalKey(k)
	}
	return keys
}

func isNotAddressKey(k string) bool { return !IsAddressKey(k) }

// isNarrow reports whether a key is the address and each client has many: a client usually has a
// whole /64 of IPv6.
func isNarrow(key string) bool {
	bits, _ := PrefixesOf(key)
	return len(bits) > 0 && bits[len(bits)-1] > 64
}

// IsOtherKey reports whether only an extractor of the application can read a key: it is printable
// ASCII, and neither ip:address nor a header field, a query parameter, a cookie or a claim.
func IsOtherKey(key string) bool {
	kind, _, _ := strings.Cut(key, ":")
	return key != "" && printable(key) && !IsAddressKey(key) && !slices.Contains(sourceKinds, kind)
}

func checkKey(key string, path Path, seen map[string]bool, errs *Problems) {
	kind, name, _ := strings.Cut(key, ":")
	if key == "" || !printable(key) {
		errs.Add(path, "must be printable ASCII and not empty (got %q)", key)
	}
	switch {
	case kind == "cookie" && !cookieName.MatchString(name):
		errs.Add(path, "must be cookie:<name>, with a name of A-Z a-z 0-9 _ - . (got %q)", key)
	case kind != "cookie" && slices.Contains(sourceKinds, kind) && !partName.MatchString(name):
		errs.Add(path, "must be %s:<name>, with a name of A-Z a-z 0-9 _ - (got %q)", kind, key)
	}
	if seen[CanonicalKey(key)] {
		errs.Add(path, "must be unique (got %q again)", key)
	}
	seen[CanonicalKey(key)] = true
}

func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// Levels returns the rules that a rule stands for: itself, and a rule for each parent network that
// its keys name. The bucket of a parent network has the limit of the network before it, times
// parentFactor.
func (r *Rule) Levels() []Rule {
	levels := []Rule{*r}
	for _, k := range r.Keys { // of which one names networks: see checkParents
		bits, _ := PrefixesOf(k)
		parent := *r
		for _, n := range bits[min(1, len(bits)):] {
			parent.Name = r.Name + "/" + strconv.Itoa(n)
			parent.Limit = times(parent.Limit, parentFactor)
			levels = append(levels, parent)
		}
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
