package outbound

import (
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/seed-181794aa/ratelimit/httplimit/usage"
	"github.com/seed-181794aa/ratelimit/tb"
)

// settle settles the estimates of a response, now or when its body has ended.
func (a *attempt) settle(response *http.Response, isRefusal bool) {
	for i := range a.parts {
		p := &a.parts[i]
		switch {
		case p.rule.Usage == nil || p.slot.IsZero():
		case isRefusal:
			p.settle(0) // what waits must not go before the pause, nor after each refusal
		case response.StatusCode == http.StatusSwitchingProtocols, response.Body == nil:
		default:
			if r := p.rule.Usage(a.r, response.Header); r != nil {
				response.Body = &body{ReadCloser: response.Body, reader: r, t: a.t, part: p}
			}
		}
	}
}

type body struct {
	io.ReadCloser
	mu     sync.Mutex // Close may be called during Read
	reader usage.Reader
	t      *Transport
	part   *part // nil when it is settled
}

// settle replaces an estimate. What waits behind it takes anew, if no other process waits, too.
func (t *Transport) settle(p *part, tokens float64) {
	if t.isShared {
		p.settle(tokens)
		return
	}
	p.takes.Lock()
	defer p.takes.Unlock()
	t.move(p.key, time.Now().Add(tb.Never), func() { p.settle(tokens) })
}

func (p *part) settle(tokens float64) {
	if p.charge.Settle(tokens) == nil { // or else the estimate stands
		p.spend(tokens-p.charged, time.Now())
	}
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
	if tokens, ok := b.reader.Usage(); ok && b.part != nil {
		b.t.settle(b.part, tokens)
		b.part = nil
	}
}
