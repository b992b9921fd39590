package httplimit

import (
	"net/url"
	"strings"
)

// queryValue returns the first value of name in a query string, and how many values there are,
// counting up to two. It reads as url.ParseQuery does, but makes no map, and no string unless
// something is escaped.
func queryValue(query, name string) (value string, n int) {
	for query != "" && n < 2 {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		key, v, _ := strings.Cut(pair, "=")
		if strings.Contains(pair, ";") || len(key) > 3*len(name) || !unescape(&key) ||
			key != name || !unescape(&v) {
			continue
		}
		if n++; n == 1 {
			value = v
		}
	}
	return value, n
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
