package proxy

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/daemon"
	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Access selects the requests that are logged.
type Access string

// What the access log has.
const (
	AccessOff     Access = "off"
	AccessRefused Access = "refused" // up to a rate
	AccessAll     Access = "all"
)

// logAccess logs the request, without its query string, which may hold secrets.
func (rec *responseRecorder) logAccess(r *http.Request) {
	p := rec.proxy
	if p.Access == AccessOff || p.Access == AccessRefused && !rec.refused() {
		return
	}
	var suppressed uint64
	if p.Access == AccessRefused {
		var ok bool
		if suppressed, ok = p.refusals.Admit(); !ok {
			return
		}
	}
	attrs := []slog.Attr{
		slog.String("client", p.Limiter.ClientAddress(r).String()),
		slog.String("method", r.Method), slog.String("host", r.Host),
		slog.String("path", r.URL.Path), slog.Int("status", rec.status),
		slog.Int64("bytes", rec.bytes), slog.Duration("duration", time.Since(rec.start)),
	}
	if rec.ruleApplied() {
		attrs = append(attrs, slog.String("rule", rec.decision.Rule),
			slog.String("key", p.formatKey(rec.key)), slog.Bool("refused", rec.refused()))
	}
	if rec.refused() && rec.decision.RetryAfter != tb.Never {
		attrs = append(attrs, slog.Duration("retry_after", rec.decision.RetryAfter))
	}
	if delay := rec.decision.Delay; delay > 0 {
		attrs = append(attrs, slog.Duration("delay", delay))
	}
	if suppressed > 0 {
		attrs = append(attrs, slog.Uint64(daemon.SuppressedKey, suppressed))
	}
	p.Log.LogAttrs(context.WithoutCancel(r.Context()), slog.LevelInfo, "request", attrs...)
}

// formatKey formats a key for the log and the live page. Unless ShowKeys is set, each value
// but an address is hashed, because it may be an API key.
func (p *Proxy) formatKey(key []httplimit.KeyPart) string {
	if p.ShowKeys {
		return httplimit.FormatKey(key)
	}
	return httplimit.FormatMaskedKey(key)
}
