package tokenbucket

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"
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

// failed is Hooks.Error. The store logs the outage.
func failed(_ *http.Request, e httplimit.Event) {
	if !e.Shadow {
		e.Writer.(*answer).event = e
	}
}

// outages is the handler of the log of a store. It writes to the log that Caddy has when a record
// comes, because a store outlives the configuration that has opened it.
type outages struct{ limiter string }

func (o outages) Handle(ctx context.Context, r slog.Record) error {
	log := zapslog.NewHandler(caddy.Log().Core(), zapslog.WithName(appName))
	return log.WithAttrs([]slog.Attr{slog.String("limiter", o.limiter)}).Handle(ctx, r)
}

func (outages) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs implements slog.Handler. A store adds no attributes.
func (o outages) WithAttrs([]slog.Attr) slog.Handler { return o }

func (o outages) WithGroup(string) slog.Handler { return o }

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
