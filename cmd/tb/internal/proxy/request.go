package proxy

import (
	"errors"
	"io"
	"net/http"
	"net/textproto"
	"strings"
	"sync/atomic"
)

// requestBody is the body of a request. It records whether it ended or failed. A failure of
// the client must not count as an error of the upstream.
type requestBody struct {
	io.ReadCloser
	ended, failed atomic.Bool
}

func (b *requestBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		b.ended.Store(true)
	case err != nil && !errors.Is(err, http.ErrBodyReadAfterClose):
		b.failed.Store(true)
	}
	return n, err
}

// unread reports whether there is a body that was not read to its end.
func (b *requestBody) unread() bool { return b != nil && !b.ended.Load() }

// clientFailed reports whether the client broke off or sent a malformed body.
func (b *requestBody) clientFailed() bool { return b != nil && b.failed.Load() }

// dropListed drops the fields that the client lists in Connection. They are not passed on,
// so the limiter must not see them: a client could show it another API key each time, and
// none to the upstream.
func dropListed(h http.Header) {
	for _, line := range h["Connection"] {
		for option := range strings.SplitSeq(line, ",") {
			name := http.CanonicalHeaderKey(textproto.TrimString(option))
			// ReverseProxy passes Upgrade and Te on in its own way. A client must not
			// hide its address by listing the field that carries it.
			if name != "Upgrade" && name != "Te" && !isForwarding(name) {
				delete(h, name)
			}
		}
	}
}

// isForwarding reports whether a field, named in canonical form, is one in which a proxy
// reports the client or the client's request.
func isForwarding(name string) bool {
	if !strings.HasPrefix(name, "X") && !strings.HasPrefix(name, "F") {
		return false
	}
	plain := strings.ToLower(strings.ReplaceAll(name, "_", "-"))
	return strings.HasPrefix(plain, "x-forwarded") || plain == "x-real-ip" || plain == "forwarded"
}
