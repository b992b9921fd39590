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

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Access says which requests are logged.
type Access string

const (
	// AccessOff logs no requests.
	AccessOff Access = "off"
	// AccessRefused logs those that were refused, and not all of them in a flood.
	AccessRefused Access = "refused"
	// AccessAll logs every request.
	AccessAll Access = "all"
)

// log logs the request. Query strings may hold secrets and are left out.
func (a *answer) log(r *http.Request) {
	p := a.proxy
	if p.Access == AccessOff || p.Access == AccessRefused && !a.refused() {
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
		slog.String("path", r.URL.Path), slog.Int("status", a.status),
		slog.Int64("bytes", a.bytes), slog.Duration("duration", time.Since(a.start)),
	}
	if a.limited() {
		key := httplimit.FormatKey(a.key)
		attrs = append(attrs, slog.String("rule", a.decision.Rule),
			slog.String("key", p.Key(key)), slog.Bool("refused", a.refused()))
	}
	if a.refused() && a.decision.RetryAfter != tb.Never {
		attrs = append(attrs, slog.Duration("retry_after", a.decision.RetryAfter))
	}
	if dropped > 0 {
		attrs = append(attrs, slog.Uint64(suppressed, dropped))
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
