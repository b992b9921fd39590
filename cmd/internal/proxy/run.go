package proxy

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"

	"github.com/seed-181794aa/ratelimit/cmd/internal/admin"
	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
	"github.com/seed-181794aa/ratelimit/cmd/internal/daemon"
	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/internal/textfile"
	"github.com/seed-181794aa/ratelimit/tb/redis"
)

// runner is a Command under way. Run calls load, dial, listen, build and serve in this order.
type runner struct {
	*Command
	*daemon.Process
	policyHangups <-chan os.Signal // from the start, so that none is lost before follow

	text     string // of the policy file
	policy   *httplimit.Policy
	store    httplimit.Store  // nil without --redis
	security *daemon.Security // nil without TLS

	proxyListener, adminListener, demoListener net.Listener // the last two may be nil
	clients                                    *connections

	proxy    *Proxy
	reloader *daemon.Reloader
	state    *stateFile         // nil without --state
	admin    *admin.Server      // nil if it is off
	servers  []daemon.Stoppable // in the order in which they are stopped
}

func (r *runner) load(ctx context.Context) (err error) {
	if r.TLSCert != "" {
		if r.security, err = daemon.LoadSecurity(ctx, r.TLSCert, r.TLSKey, ""); err != nil {
			return err
		}
	}
	name := r.Policy
	switch name {
	case off:
		return nil
	case "":
		name, r.text = "the default policy", demoPolicy
	default:
		if r.text, err = textfile.ReadUntil(ctx, name); err != nil {
			return err
		}
	}
	r.policy, err = cli.ParsePolicyFile(name, []byte(r.text))
	return err
}

// dial connects to Redis, if there is a flag for it. The proxy also starts without the server.
func (r *runner) dial(context.Context) (err error) {
	r.store, err = r.Redis.Open(r.Process, redis.WithTimeout(r.RedisTimeout))
	return err
}

// listen opens all ports before any server starts, so that a port in use is an error at once.
func (r *runner) listen(context.Context) (err error) {
	if r.proxyListener, err = r.ListenTCP("--listen", r.Listen); err != nil {
		return err
	}
	if r.Admin != off {
		if r.adminListener, err = r.ListenTCP("--admin", r.Admin); err != nil {
			return err
		}
	}
	if r.usesDemo() {
		r.demoListener, err = r.ListenTCP("demo upstream", "127.0.0.1:0")
	}
	return err
}

func (r *runner) build(context.Context) (err error) {
	c := Config{
		Upstream: &r.Upstream.URL, PreserveHost: r.PreserveHost, Timeout: r.Timeout,
		Policy: r.policy, Client: r.clientAddress(), Fields: r.fields(), Options: r.options(),
		Underscores: r.Underscores, BodyTimeout: r.BodyTimeout,
		Log: r.Log, Access: r.AccessLog, ShowKeys: r.ShowKeys, LostLines: r.LostLines,
	}
	if r.usesDemo() {
		c.Upstream = &url.URL{Scheme: "http", Host: daemon.Address(r.demoListener)}
	}
	if r.adminListener != nil {
		c.Refused = func(req *http.Request, e httplimit.Event) { r.admin.Refused(req, e) }
	}
	if r.proxy, err = New(c); err != nil {
		return err
	}
	if r.State != "" {
		r.state = &stateFile{
			name: r.State, limiter: r.proxy.Limiter, metrics: r.proxy.Metrics, log: r.Log,
		}
		if err := r.state.restore(); err != nil {
			return err
		}
	}
	r.reloader = newReloader(r.proxy, cmp.Or(r.Policy, "the default policy"))
	if r.policy != nil {
		r.reloader.LogWarnings(r.proxy.warnings(r.policy))
	}
	r.logRisks()
	r.clients = &connections{Listener: r.proxyListener}
	server := daemon.NewServer(r.clients, r.proxy, r.proxy.errors)
	configure(server, r.clientFlags, r.security)
	r.servers = append(r.servers, &frontServer{server, r.proxy, r.clients})
	if r.adminListener != nil {
		r.admin = admin.New(admin.Config{
			Limiter: r.proxy.Limiter, Metrics: r.proxy.Metrics.Handler(), FormatKey: r.proxy.formatKey,
			Title: "tb-proxy", Where: "at " + r.url(), Warnings: func() []string {
				warnings, _ := r.proxy.warned.Load().([]string)
				return warnings
			},
		})
		r.servers = append(r.servers, daemon.NewServer(r.adminListener, r.admin, r.proxy.errors))
	}
	if r.usesDemo() {
		demo := http.HandlerFunc(demoUpstream)
		r.servers = append(r.servers, daemon.NewServer(r.demoListener, demo, r.proxy.errors))
	}
	return nil
}

func (r *runner) url() string {
	scheme := "http://"
	if r.security != nil {
		scheme = "https://"
	}
	return scheme + daemon.Address(r.proxyListener)
}

func (r *runner) serve(ctx context.Context) error {
	daemon.RedirectStandardLog(r.proxy.errors)
	tasks := []func(context.Context){daemon.Every(stuckTimeout, r.clients.closeStuck)}
	if r.security != nil {
		tasks = append(tasks, func(ctx context.Context) {
			textfile.Watch(ctx, r.Hangups, r.security.Watcher(r.Log))
		})
	}
	if r.Policy != "" && r.Policy != off {
		tasks = append(tasks, r.follow)
	}
	if r.state != nil {
		tasks = append(tasks, daemon.Every(r.Interval, func() {
			_ = r.state.save() // the log has the error
		}))
	}
	if r.admin != nil {
		tasks = append(tasks, r.admin.Run)
	}
	defer daemon.Background(ctx, tasks...)()
	r.printBanner(r.Stdout)
	err := r.Serve(ctx, r.Delay, r.Shutdown, r.servers...)
	if r.state != nil { // after the last request
		err = errors.Join(err, r.state.save())
	}
	return err
}

func (r *runner) follow(ctx context.Context) {
	r.proxy.Limiter.Follow(ctx, httplimit.PolicyFile{
		Name: r.Policy, Text: r.text, Signals: r.policyHangups,
		Reloaded: func(x httplimit.Reload) { r.proxy.reloaded(r.reloader, x) },
	})
}
