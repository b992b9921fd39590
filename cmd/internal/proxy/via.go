package proxy

import (
	"crypto/rand"
	"net/http"
	"strconv"
	"strings"
)

// via is how a proxy appears in the field Via, by which it recognises its own requests (RFC 9110,
// section 7.6.3). The name is random, because several proxies may be on the way.
type via struct {
	name   string
	http11 string // the element for a request of HTTP/1.1
}

func newVia() via {
	name := "tb-" + strings.ToLower(rand.Text())
	return via{name, "1.1 " + name}
}

// sent reports whether the proxy itself has sent a request with these fields.
func (v via) sent(h http.Header) bool {
	for _, line := range h["Via"] {
		if strings.Contains(line, v.name) {
			return true
		}
	}
	return false
}

// add adds the proxy to the field, after the proxies that have passed the request on.
func (v via) add(out http.Header, in *http.Request) {
	element := v.http11
	switch {
	case in.ProtoMajor != 1:
		element = strconv.Itoa(in.ProtoMajor) + ".0 " + v.name
	case in.ProtoMinor == 0:
		element = "1.0 " + v.name
	}
	out["Via"] = append(out["Via"], element)
}
