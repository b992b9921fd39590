package proxy

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// via is the name of a proxy in the field Via, by which the proxy recognises its own requests (RFC
// 9110, section 7.6.3). It is random, because several proxies may be on the way.
type via string

func newVia() via { return via("tb-" + strings.ToLower(rand.Text())) }

// sent reports whether the proxy itself has sent a request with these fields.
func (v via) sent(h http.Header) bool {
	return slices.ContainsFunc(h["Via"], func(line string) bool {
		return strings.Contains(line, string(v))
	})
}

// add adds the proxy to the field, after the proxies that have passed the request on.
func (v via) add(out http.Header, in *http.Request) {
	out["Via"] = append(out["Via"], fmt.Sprintf("%d.%d %s", in.ProtoMajor, in.ProtoMinor, v))
}
