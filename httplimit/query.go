package httplimit

import (
	"net/url"
	"strings"
)

// queryValue returns the first value of name in a query string, and how many there are,
// counting up to two. It reads as url.ParseQuery does, but makes neither a map nor, unless
// something is escaped, a string.
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

func unescape(s *string) bool {
	if !strings.ContainsAny(*s, "%+") {
		return true
	}
	u, err := url.QueryUnescape(*s)
	*s = u
	return err == nil
}
