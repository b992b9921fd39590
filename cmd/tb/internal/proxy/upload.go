package proxy

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// lingering is how long the rest of a body is waited for that nobody wants any more. If it
// has come by then the connection can be used again.
const lingering = time.Second

// upload is the body of a request. It notes how far the client has come, because what
// breaks off there is no error of the upstream.
type upload struct {
	io.ReadCloser
	ended, broken atomic.Bool
}

func (u *upload) Read(p []byte) (int, error) {
	n, err := u.ReadCloser.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		u.ended.Store(true)
	case err != nil && !errors.Is(err, http.ErrBodyReadAfterClose):
		u.broken.Store(true)
	}
	return n, err
}

// unread says whether there is a body that was not read to its end.
func (u *upload) unread() bool { return u != nil && !u.ended.Load() }

// brokeOff says whether the client broke off, or sent what is no body.
func (u *upload) brokeOff() bool { return u != nil && u.broken.Load() }

// linger bounds how long net/http waits for the rest of the request's body. By itself it
// would wait for ever, before it sends an answer or ends with the request.
func (a *answer) linger() {
	if a.upload.unread() {
		// There is no deadline only if there is no connection, as in tests.
		_ = http.NewResponseController(a.ResponseWriter).SetReadDeadline(time.Now().Add(lingering))
	}
}
