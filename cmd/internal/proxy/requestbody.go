package proxy

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// requestBody is the body of a request. It records whether it ended or failed. A failure of
// the client must not count as an error of the upstream.
type requestBody struct {
	io.Reader
	kept *bytes.Buffer // all that was read; nil if that is more than maxKept, or without HTTP/2

	ended, closed, answered atomic.Bool  // the last one by the upstream
	failed                  atomic.Int32 // the status for a client that is to blame, or 0

	timeout time.Duration // for each piece; 0 for no limit
	mu      sync.Mutex
	conn    *http.ResponseController // nil after the end of the request

	patience time.Duration // with the upstream, after each piece
	stalled  *time.Timer
	end      context.CancelCauseFunc // of the request to the upstream
}

// errStalled ends a request if the upstream neither takes more of the body nor answers. The timeout
// of net/http begins after the body, so an upstream that has stopped would keep a long one forever.
var errStalled = fmt.Errorf("neither the next piece nor an answer: %w", os.ErrDeadlineExceeded)

func (p *Proxy) newBody(w http.ResponseWriter, body io.Reader) *requestBody {
	b := &requestBody{Reader: body, timeout: p.BodyTimeout, conn: http.NewResponseController(w)}
	const forever = 1<<63 - 1
	b.patience = cmp.Or(p.Timeout, forever)
	if p.Upstream.Scheme == "https" {
		b.kept = new(bytes.Buffer)
	}
	b.stalled = time.AfterFunc(forever, func() {
		switch {
		case b.answered.Load():
		case b.closed.Load():
			b.end(errNotTaken)
		default:
			b.end(errStalled)
		}
	})
	return b
}

// of returns the request to the upstream. It is a copy, because net/http inspects the Body of its
// own request. The limiter has the context of the client: if that ends, the client has left.
func (b *requestBody) of(r *http.Request) *http.Request {
	ctx, end := context.WithCancelCause(r.Context())
	b.end = end
	r = r.WithContext(ctx)
	r.Body = b
	return r
}

// Read returns the end again and again. The transport reads once more after the end, and net/http
// may have closed the body by then, because the upstream has answered. The transport would take
// the error for a failed request, and cut off the answer.
func (b *requestBody) Read(p []byte) (int, error) {
	switch {
	case b.ended.Load():
		return 0, io.EOF
	case b.closed.Load():
		return 0, http.ErrBodyReadAfterClose
	}
	if b.timeout > 0 {
		b.setDeadline(time.Now().Add(b.timeout))
	}
	b.stalled.Stop()
	n, err := b.Reader.Read(p)
	b.setDeadline(time.Time{}) // the upstream may take its time; net/http reads on after the end
	switch {
	case b.kept == nil:
	case b.kept.Len()+n > maxKept:
		b.kept = nil
	default:
		b.kept.Write(p[:n])
	}
	switch {
	case errors.Is(err, io.EOF):
		b.ended.Store(true)
	case errors.Is(err, os.ErrDeadlineExceeded):
		b.failed.Store(http.StatusRequestTimeout)
	case err != nil && !errors.Is(err, http.ErrBodyReadAfterClose):
		b.failed.Store(http.StatusBadRequest)
	}
	return n, err
}

// rewind makes Read begin again, and returns false if not all that was read is kept.
func (b *requestBody) rewind() bool {
	if b.kept == nil {
		return false
	}
	b.Reader, b.kept = io.MultiReader(b.kept, b.Reader), new(bytes.Buffer)
	b.ended.Store(false)
	b.stalled.Stop()
	return true
}

// Close leaves the body to net/http. Its Close waits for a Read under way, and reads the rest,
// which may never come. From Go 1.27 on, httputil.ReverseProxy calls it before the answer is sent.
// A transport that closes a body before its end has an answer, or will have none.
func (b *requestBody) Close() error {
	b.closed.Store(true)
	if b.unread() {
		b.stalled.Reset(drainTimeout)
	}
	return nil
}

// setDeadline sets the deadline of the connection, and lets the patience begin, until release is
// called. The transport may read a body in the background even after the end of the request, and
// must not set a deadline for the next request, or keep this one by a timer.
func (b *requestBody) setDeadline(t time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.conn != nil {
		_ = b.conn.SetReadDeadline(t) // fails only without a connection, as in tests
		b.stalled.Reset(b.patience)
	}
}

func (b *requestBody) release() {
	if b != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.conn = nil
		b.stalled.Stop()
	}
}

func (b *requestBody) unread() bool { return b != nil && !b.ended.Load() }
