package outbound

import (
	"io"
	"net/http"
	"sync"

	"github.com/seed-181794aa/ratelimit/httplimit/usage"
	"github.com/seed-181794aa/ratelimit/tb"
)

// settle settles the estimates of a response, now or when its body has ended.
func (a *attempt) settle(response *http.Response, isRefusal bool) {
	for i := range a.parts {
		p := &a.parts[i]
		switch {
		case p.rule.Usage == nil || len(a.charges) == 0:
		case isRefusal:
			_ = p.charge.Settle(0) // if the store fails, the estimate stands
		case response.StatusCode == http.StatusSwitchingProtocols, response.Body == nil:
		default:
			if r := p.rule.Usage(a.r, response.Header); r != nil {
				response.Body = &body{ReadCloser: response.Body, reader: r, charge: p.charge}
			}
		}
	}
}

// body is the body of a response whose usage is read.
type body struct {
	io.ReadCloser
	mu     sync.Mutex // Close may be called during Read
	reader usage.Reader
	charge tb.StoreCharge
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.pass(p[:n], err != nil)
	return n, err
}

func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.pass(nil, true)
	return err
}

func (b *body) pass(p []byte, isLast bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, _ = b.reader.Write(p)
	if !isLast {
		return
	}
	if tokens, ok := b.reader.Usage(); ok {
		_ = b.charge.Settle(tokens) // if it is no number or the store fails, the estimate stands
	}
}
