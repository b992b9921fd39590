package tokenbucket

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

func init() { caddy.RegisterModule(Handler{}) }

// defaultName is the name of a limiter that has none in the configuration.
const defaultName = "default"

// Handler limits requests by a policy. A refused request is an error of its route, with status 429,
// 400 or 503, if the server has an error route for it. Otherwise the handler answers it with a
// problem document (RFC 9457). Early data of HTTP/3 is an error with status 425.
type Handler struct {
	// Name is the name of the limiter. The default is "default", or in a Caddyfile a name of its own
	// for each directive. Handlers with the same name share their buckets, and must have the same
	// policy and settings. A reload keeps the buckets of a limiter by its name.
	Name string `json:"name,omitempty"`
	// Policy is the policy, in the format of docs/policy.md. A key may also be text with
	// placeholders.
	Policy json.RawMessage `json:"policy,omitempty"`
	// PolicyFile is the name of a file that has the policy. It is read when Caddy loads the
	// configuration.
	PolicyFile string `json:"policy_file,omitempty"`
	// Matchers are sets of request matchers, by name. The match of a rule can have the key
	// "matcher:<name>". Its value is true if one of the sets matches, and otherwise false.
	Matchers map[string]caddyhttp.RawMatcherSets `json:"matchers,omitempty"`
	// ShowKeys shows keys unchanged in the log. Otherwise it has hashes of keys other than addresses.
	ShowKeys bool `json:"show_keys,omitempty"`
	// Caddyfile is the file and the line of the directive, for errors.
	Caddyfile string `json:"caddyfile,omitempty"`
	Settings

	app     *App
	limiter *limiter
}

// CaddyModule implements caddy.Module.
func (Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID: "http.handlers.token_bucket", New: func() caddy.Module { return new(Handler) },
	}
}

// Provision implements caddy.Provisioner.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.Name = cmp.Or(h.Name, defaultName)
	app, err := ctx.App(appName)
	if err != nil {
		return err
	}
	h.app = app.(*App)
	if h.Redis != nil {
		err = h.Redis.resolve()
	}
	if err == nil {
		h.limiter, err = h.app.use(ctx, h)
	}
	if err != nil {
		return fmt.Errorf("limiter %q: %w%s", h.Name, err, where(h.Caddyfile))
	}
	return nil
}

// document returns the text of the policy.
func (h *Handler) document() ([]byte, error) {
	switch {
	case (len(h.Policy) == 0) == (h.PolicyFile == ""):
		return nil, errors.New("want either policy or policy_file")
	case h.PolicyFile != "":
		return os.ReadFile(h.PolicyFile)
	}
	return h.Policy, nil
}

// ServeHTTP implements caddyhttp.MiddlewareHandler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if r.TLS != nil && !r.TLS.HandshakeComplete { // its address may be forged, and it replayed
		return caddyhttp.Error(http.StatusTooEarly, errors.New("the request is early data"))
	}
	if len(h.Matchers) > 0 { // which may have failed in the directive before an error route
		caddyhttp.SetVar(r.Context(), matcherErrorVar, nil)
	}
	a, method := &answer{handler: h, w: w}, r.Method
	if method == "CONNECT" && (r.Proto == "websocket" || r.Header.Get(":protocol") == "websocket") {
		r.Method = http.MethodGet // in HTTP/3 or HTTP/2, as reverse_proxy sends it
	}
	_, settlement, granted := h.limiter.Admit(a, r)
	r.Method = method
	if !granted {
		return a.send(r)
	}
	defer settlement.Finish()
	if len(h.Matchers) > 0 {
		err, failed := caddyhttp.GetVar(r.Context(), matcherErrorVar).(error)
		if failed {
			return caddyhttp.Error(statusOf(err), err)
		}
	}
	if settlement == nil {
		return next.ServeHTTP(w, r)
	}
	r.Body = settlement.Request(r).Body // of the request that the placeholders of Caddy read
	err := next.ServeHTTP(settlement.Writer(w), r)
	settlement.Writer(unsent{w}).WriteHeader(statusOf(err))
	return err
}

// statusOf returns the status with which Caddy answers if a handler has returned err, which may be
// nil, and has written nothing.
func statusOf(err error) int {
	var he caddyhttp.HandlerError
	switch {
	case err == nil:
		return http.StatusOK
	case errors.As(err, &he) && he.StatusCode != 0:
		return he.StatusCode
	}
	return http.StatusInternalServerError
}

// unsent is the writer of a response that Caddy writes after the handlers, so that the settlement
// gets its status.
type unsent struct{ http.ResponseWriter }

func (unsent) WriteHeader(int) {}

var _ caddy.Provisioner = (*Handler)(nil)
