package tokenbucket

import (
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// sampled returns a logger that writes one line a second for each message, so that a flood of
// requests does not become a flood of lines.
func sampled(log *zap.Logger) *zap.Logger {
	return log.WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(c, time.Second, 1, 0)
	}))
}

// blame is Hooks.Delayed and Hooks.Refused. The client of a delayed request may disconnect before
// the rule grants it. The answer knows its status when it is sent, and logs the event then.
func blame(_ *http.Request, e httplimit.Event) { e.Writer.(*answer).event = e }

// shadow is Hooks.Shadow.
func shadow(r *http.Request, e httplimit.Event) {
	if !e.Allowed {
		e.Writer.(*answer).log(zap.InfoLevel, r, "would have refused a request", e)
	}
}

// failed is Hooks.Error.
func failed(r *http.Request, e httplimit.Event) {
	a := e.Writer.(*answer)
	if !e.Shadow {
		a.event = e
	}
	a.log(zap.ErrorLevel, r, "could not decide", e, zap.Error(e.Err))
}

// log logs an event. The rule is part of the message, because App.events is sampled by messages.
func (a *answer) log(
	level zapcore.Level, r *http.Request, what string, e httplimit.Event, fields ...zap.Field,
) {
	h := a.handler
	line := h.app.events.Check(level, "limiter "+h.Name+": rule "+e.Rule+" "+what)
	if line == nil {
		return
	}
	key := httplimit.FormatMaskedKey(e.Key)
	if h.ShowKeys {
		key = httplimit.FormatKey(e.Key)
	}
	client, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
	line.Write(append(fields, zap.String("limiter", h.Name), zap.String("rule", e.Rule),
		zap.String("key", key), zap.String("client_ip", client), zap.String("method", r.Method),
		zap.String("path", r.URL.Path))...)
}
