package proxy

import (
	"net/http"
	"net/textproto"
	"strings"
)

// dropListed drops the fields that the client lists in Connection. They are not passed on,
// so the limiter must not see them either: a client could show it another API key each
// time, and the upstream none.
func dropListed(h http.Header) {
	for _, line := range h["Connection"] {
		for option := range strings.SplitSeq(line, ",") {
			name := http.CanonicalHeaderKey(textproto.TrimString(option))
			// The first two are passed on in another way, and who the client is must not
			// be hidden by listing it.
			if name != "Upgrade" && name != "Te" && !forwarded(name) {
				delete(h, name)
			}
		}
	}
}

// onlyWebSocket drops the wish for any other protocol. Behind an upgrade nobody counts
// requests, and in HTTP/2 there may be any number of them.
func onlyWebSocket(h http.Header) {
	if wish := h.Get("Upgrade"); wish != "" && !strings.EqualFold(wish, "websocket") {
		delete(h, "Upgrade")
		delete(h, "Connection")
	}
}

// forwarded says whether a field, whose name is in canonical form, claims to come from a
// proxy and to say who the client is.
func forwarded(name string) bool {
	if !strings.HasPrefix(name, "X") && !strings.HasPrefix(name, "F") {
		return false
	}
	plain := strings.ToLower(strings.ReplaceAll(name, "_", "-"))
	return strings.HasPrefix(plain, "x-forwarded") || plain == "x-real-ip" || plain == "forwarded"
}
