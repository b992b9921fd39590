package proxy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Access selects the requests that are logged.
type Access string

const (
	// AccessOff logs no requests.
	AccessOff Access = "off"
	// AccessRefused logs refused requests, up to a rate.
	AccessRefused Access = "refused"
	// AccessAll logs every request.
	AccessAll Access = "all"
)

// logAccess logs the request, without its query string, which may hold secrets.
func (rec *responseRecorder) logAccess(r *http.Request) {
	p := rec.proxy
	if p.Access == AccessOff || p.Access == AccessRefused && !rec.refused() {
		return
	}
	var dropped uint64
	if p.Access == AccessRefused {
		var ok bool
		if dropped, ok = p.refusals.admit(); !ok {
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
		key := rec.key
		if key == "" {
			key = p.Limiter.Key(r, rec.decision.Rule)
		}
		attrs = append(attrs, slog.String("rule", rec.decision.Rule),
			slog.String("key", p.Key(key)), slog.Bool("refused", rec.refused()))
	}
	if rec.refused() && rec.decision.RetryAfter != tb.Never {
		attrs = append(attrs, slog.Duration("retry_after", rec.decision.RetryAfter))
	}
	if dropped > 0 {
		attrs = append(attrs, slog.Uint64(suppressedKey, dropped))
	}
	p.Log.LogAttrs(context.WithoutCancel(r.Context()), slog.LevelInfo, "request", attrs...)
}

// Key returns a key in words as it may be shown: addresses as they are, and hashes of the
// rest, which may be API keys, unless ShowKeys says otherwise.
func (p *Proxy) Key(key string) string {
	if p.ShowKeys || key == "everybody" {
		return key
	}
	var shown []string
	for rest := key; rest != ""; {
		name, written, ok := strings.Cut(rest, "=")
		if !ok {
			return hash(key) // not what was expected
		}
		var value string
		if value, rest = cutValue(written); name != "ip:address" && value != "" {
			value = hash(value)
		}
		shown = append(shown, name+"="+value)
	}
	return strings.Join(shown, " ")
}

// cutValue returns the value that text begins with, which is quoted if it has spaces, and
// what is behind it.
func cutValue(text string) (value, rest string) {
	if strings.HasPrefix(text, `"`) {
		if quoted, err := strconv.QuotedPrefix(text); err == nil {
			value, _ = strconv.Unquote(quoted) // it is well-formed
			return value, strings.TrimPrefix(text[len(quoted):], " ")
		}
	}
	value, rest, _ = strings.Cut(text, " ")
	return value, rest
}

// hash is short, for people who compare lines of a log.
func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256:" + hex.EncodeToString(sum[:6])
}
