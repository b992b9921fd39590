package tokenbucket

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/metrics"
)

const appName = "token_bucket"

func init() { caddy.RegisterModule(App{}) }

// App keeps the limiters of a configuration. Caddy makes it when a handler of the configuration
// asks for it. It has no fields.
//
// A configuration may fail after its handlers are provisioned, and Caddy then goes on with the
// configuration before. So the app changes a limiter that is in use only when Caddy says that the
// new configuration has started.
type App struct {
	ctx    caddy.Context
	log    *zap.Logger
	events *zap.Logger // sampled
	used   map[string]*use
}

// use is the use of a limiter by the handlers of a configuration.
type use struct {
	key     poolKey
	text    string // of the policy, the matchers and the settings
	place   string // of the first of the handlers, in a Caddyfile
	content content
	before  content // was in force when the content came into force
	limiter *limiter
}

// CaddyModule implements caddy.Module.
func (App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: appName, New: func() caddy.Module { return new(App) }}
}

// Provision implements caddy.Provisioner. It subscribes to the events that Caddy emits when all
// apps of the configuration have started, and before it stops them.
func (a *App) Provision(ctx caddy.Context) error {
	a.ctx, a.log, a.used = ctx, ctx.Logger(), map[string]*use{}
	a.events = sampled(a.log)
	events, err := ctx.App("events")
	if err != nil {
		return err
	}
	on := func(event string, do func()) error {
		return events.(*caddyevents.App).On(event, &reaction{do})
	}
	return errors.Join(on("started", a.commit), on("stopping", a.stopWaiting))
}

// Start implements caddy.App.
func (*App) Start() error { return nil }

// Stop implements caddy.App.
func (*App) Stop() error { return nil }

// Cleanup implements caddy.CleanerUpper. A configuration can also fail after it has started. Then
// another one has the limiter, and the policy before is put in force again.
func (a *App) Cleanup() error {
	var errs []error
	for _, u := range a.used {
		deleted, err := limiters.Delete(u.key)
		errs = append(errs, err)
		if !deleted && u.limiter.inForce.policy == u.content.policy {
			errs = append(errs, u.limiter.force(u.before))
		}
	}
	return errors.Join(errs...)
}

// use returns the limiter of a handler. If it is in use already, it still has its policy of before.
func (a *App) use(ctx caddy.Context, h *Handler) (*limiter, error) {
	document, err := h.document()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal([]any{string(document), h.Matchers, h.Settings})
	if err != nil {
		return nil, err
	}
	u := &use{key: newPoolKey(h.Name, h.Settings), text: string(text), place: h.Caddyfile}
	u.content.look = h.Look
	if other := a.used[h.Name]; other != nil {
		if u.text != other.text {
			return nil, errors.New("another handler has a limiter of this name with another policy," +
				" other matchers or other settings: give one of them another name" + where(other.place))
		}
		return other.limiter, nil
	}
	if u.content.matchers, err = loadMatchers(ctx, h.Matchers); err != nil {
		return nil, err
	}
	opts, err := h.options(u.content.matchers.extractor)
	if err != nil {
		return nil, err
	}
	if u.content.policy, err = httplimit.ParsePolicyFor(document, opts...); err != nil {
		return nil, plain(err)
	}
	if u.limiter, err = loadLimiter(u.key, h.Settings, u.content); err != nil {
		return nil, plain(err)
	}
	a.used[h.Name] = u
	if err := a.ctx.GetMetricsRegistry().Register(metrics.Rules(h.Name, u.limiter)); err != nil {
		return nil, err
	}
	for _, text := range append(u.content.policy.Warnings(), doubts(u.content.policy)...) {
		a.log.Warn("policy", zap.String("limiter", h.Name), zap.String("warning", text))
	}
	return u.limiter, nil
}

// commit puts the policies in force.
func (a *App) commit() {
	for name, u := range a.used {
		u.before = u.limiter.inForce
		if err := u.limiter.force(u.content); err != nil {
			a.log.Error("policy rejected", zap.String("limiter", name), zap.Error(err))
		}
	}
}

// stopWaiting refuses the requests that would still wait for their tokens when half of the grace
// period of a process that exits is over. Without a grace period, Caddy waits for all requests.
func (a *App) stopWaiting() {
	app, err := a.ctx.AppIfConfigured("http")
	if err != nil || !caddy.Exiting() {
		return
	}
	if h := app.(*caddyhttp.App); h.GracePeriod > 0 {
		for _, u := range a.used {
			u.limiter.StopWaiting(time.Now().Add(time.Duration(h.ShutdownDelay + h.GracePeriod/2)))
		}
	}
}

// reaction is a caddyevents.Handler. It is a struct because Caddy logs it as JSON.
type reaction struct{ do func() }

func (r *reaction) Handle(context.Context, caddy.Event) error {
	r.do()
	return nil
}

// where returns the place of a handler for an error, or nothing if it has none.
func where(place string) string {
	if place == "" {
		return ""
	}
	return ", at " + place
}

// plain returns an error without the name of the package that it comes from.
func plain(err error) error {
	return errors.New(strings.TrimPrefix(err.Error(), "httplimit: "))
}

var (
	_ caddy.Provisioner  = (*App)(nil)
	_ caddy.App          = (*App)(nil)
	_ caddy.CleanerUpper = (*App)(nil)
)
