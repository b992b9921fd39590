package clientaddr

import (
	"net/textproto"
	"slices"
	"strings"
)

// Forwarded returns the client of each element of Forwarded (RFC 7239) in these lines, as an entry
// of X-Forwarded-For that Behind reads. An element without the address of a client, such as
// for=_hidden, is "unknown".
func Forwarded(lines []string) (entries []string) {
	for _, line := range slices.Backward(lines) {
		for more := true; more; {
			var element string
			line, element, more = cutLast(line, ',')
			if textproto.TrimString(element) != "" {
				entries = append(entries, forwardedFor(element))
			}
		}
	}
	slices.Reverse(entries)
	return entries
}

// forwardedFor returns the address in an element, or "unknown" if it has not just one.
func forwardedFor(element string) string {
	const unknown = "unknown"
	client := ""
	for more := true; more; {
		var pair string
		element, pair, more = cutLast(element, ';')
		name, value, _ := strings.Cut(pair, "=")
		if !strings.EqualFold(textproto.TrimString(name), "for") {
			continue
		}
		value = textproto.TrimString(value)
		if n := len(value) - 1; n > 0 && value[0] == '"' && value[n] == '"' {
			value = value[1:n]
		}
		value, _, _ = strings.Cut(value, ":_") // a hidden port
		if _, ok := Parse(value); !ok || client != "" {
			return unknown
		}
		client = value
	}
	if client == "" {
		return unknown
	}
	return client
}

// cutLast cuts s at the last separator that is not in a quoted string. It reads from the end,
// because a client has written the start, and need not have ended its strings.
func cutLast(s string, separator byte) (before, after string, found bool) {
	quoted := false
	for i := len(s) - 1; i >= 0; i-- {
		switch {
		case s[i] == '"' && (len(s[:i])-len(strings.TrimRight(s[:i], `\`)))%2 == 0:
			quoted = !quoted
		case s[i] == separator && !quoted:
			return s[:i], s[i+1:], true
		}
	}
	return "", s, false
}
