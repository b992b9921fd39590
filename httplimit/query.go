package httplimit

import (
	"iter"
	"net/url"
	"strings"
)

// queryValue returns the first value of name in a query string, and whether there are more.
func queryValue(query, name string) (value string, repeated bool) {
	n := 0
	for v := range inQuery(query, name) {
		if n++; n == 2 {
			return value, true
		}
		value = v
	}
	return value, false
}

// inQuery yields the values of name in a query string. It reads as url.ParseQuery does, but makes
// no map, and no string unless something is escaped.
func inQuery(query, name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for rest := query; rest != ""; {
			var pair string
			pair, rest, _ = strings.Cut(rest, "&")
			key, v, _ := strings.Cut(pair, "=")
			if strings.Contains(pair, ";") || len(key) > 3*len(name) || !unescape(&key) ||
				key != name || !unescape(&v) {
				continue
			}
			if !yield(v) {
				return
			}
		}
	}
}

// unescape replaces s by its meaning in a query, and reports whether it is well-formed.
func unescape(s *string) bool {
	if !strings.ContainsAny(*s, "%+") {
		return true
	}
	u, err := url.QueryUnescape(*s)
	*s = u
	return err == nil
}
