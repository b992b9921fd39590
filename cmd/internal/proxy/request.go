package proxy

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/seed-181794aa/ratelimit/cmd/internal/beforerules"
)

func (p *Proxy) check(r *http.Request) int {
	if p.via.sent(r.Header) {
		p.errors.Error("loop: the upstream sends requests back to the proxy", "path", r.URL.Path)
		return http.StatusLoopDetected
	}
	status, _ := beforerules.Status(r)
	return status
}

// dropMisreadable drops the fields whose names have other characters than letters, digits and
// hyphens. Many upstreams turn a name into a variable and read X_Api_Key as X-Api-Key. A client
// could hide a key from the limiter that way.
func (p *Proxy) dropMisreadable(h http.Header) {
	for name := range h {
		for i := range len(name) {
			c := name[i]
			if c == '-' || 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' ||
				c == '_' && p.Underscores {
				continue
			}
			delete(h, name)
			break
		}
	}
}

// dropConnectionFields drops the fields that are about the connection of the client, and those that
// it lists in Connection. They are not passed on, so the limiter must not see them: a client could
// show it another API key each time, and none to the upstream. Of upgrades only WebSocket stays:
// requests behind another one are not counted, and HTTP/2 allows any number of them.
func (p *Proxy) dropConnectionFields(h http.Header) {
	upgrades := false
	for _, line := range h["Connection"] {
		for option := range strings.SplitSeq(line, ",") {
			name := http.CanonicalHeaderKey(textproto.TrimString(option))
			upgrades = upgrades || name == "Upgrade"
			// Upgrade, Te and Content-Length are passed on in a way of their own. A client must not
			// hide its address by listing the field that carries it.
			if name != "Upgrade" && name != "Te" && name != "Content-Length" && !p.namesClient(name) {
				delete(h, name)
			}
		}
	}
	protocol := h.Get("Upgrade")
	for _, name := range []string{"Connection", "Keep-Alive", "Proxy-Authenticate",
		"Proxy-Authorization", "Proxy-Connection", "Trailer", "Upgrade"} {
		delete(h, name)
	}
	if upgrades && strings.EqualFold(protocol, "websocket") {
		h["Connection"], h["Upgrade"] = []string{"Upgrade"}, []string{protocol}
	}
}

// dropForged drops the forwarding fields that no trusted proxy sent, so that no rule sees them, and
// Forwarded, which is passed on only if it has the address.
func (p *Proxy) dropForged(r *http.Request) {
	trusted := p.Limiter.TrustsPeer(r)
	for name := range r.Header {
		// Many upstreams read _ as -. Proxies do not write it, so the client did.
		if p.namesClient(name) && (!trusted || strings.Contains(name, "_")) ||
			name == "Forwarded" && p.addressHeader != name {
			delete(r.Header, name)
		}
	}
}

func (p *Proxy) namesClient(name string) bool {
	return beforerules.IsForwarding(name) || name == p.addressHeader
}

// via is the name of a proxy in the field Via, by which the proxy recognises its own requests (RFC
// 9110, section 7.6.3). It is random, because several proxies may be on the way.
type via string

func newVia() via { return via("tb-" + strings.ToLower(rand.Text())) }

func (v via) sent(h http.Header) bool {
	return slices.ContainsFunc(h["Via"], func(line string) bool {
		return strings.Contains(line, string(v))
	})
}

func (v via) add(out http.Header, in *http.Request) {
	out["Via"] = append(out["Via"], fmt.Sprintf("%d.%d %s", in.ProtoMajor, in.ProtoMinor, v))
}
