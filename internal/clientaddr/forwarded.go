package clientaddr

import (
	"net/textproto"
	"strings"
)

// forwardedFor returns the address in an element of Forwarded, or "" if it does not have just one.
func forwardedFor(element string) (client string) {
	found := false
	for more := true; more; {
		var pair string
		element, pair, more = cutLast(element, ';', true)
		name, value, _ := strings.Cut(pair, "=")
		if !strings.EqualFold(textproto.TrimString(name), "for") {
			continue
		}
		if found {
			return ""
		}
		client, found = textproto.TrimString(value), true
		if n := len(client) - 1; n > 0 && client[0] == '"' && client[n] == '"' {
			client = client[1:n]
		}
		client, _, _ = strings.Cut(client, ":_") // a hidden port
	}
	return client
}

// cutLast cuts s at the last separator, or with quotes at the last one outside of a quoted string.
// It reads from the end, because a client has written the start, and need not end its strings.
func cutLast(s string, separator byte, quotes bool) (before, after string, found bool) {
	quoted := false
	for i := len(s) - 1; i >= 0; i-- {
		switch {
		case quotes && s[i] == '"' && (len(s[:i])-len(strings.TrimRight(s[:i], `\`)))%2 == 0:
			quoted = !quoted
		case s[i] == separator && !quoted:
			return s[:i], s[i+1:], true
		}
	}
	return "", s, false
}
