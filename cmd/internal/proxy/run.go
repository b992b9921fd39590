package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/cmd/internal/admin"
	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
	"github.com/seed-181794aa/ratelimit/cmd/internal/daemon"
	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/internal/clientaddr"
	"github.com/seed-181794aa/ratelimit/tb/redis"
)

// runner is a Command under way. Run calls load, dial, listen, build, serve and close in this
// order.
type runner struct {
	*Command
	*daemon.Process

	data     []byte // of the policy file
	policy   *httplimit.Policy
	redis    rueidis.Client   // nil without --redis
	store    httplimit.Store  // nil without --redis
	security *daemon.Security // nil without TLS

	proxyListener, adminListener, demoListener net.Listener // the last two may be nil

	proxy   *Proxy
	state   *stateFile       // nil without --state
	front   *connections     // of the proxy
	admin   *admin.Server    // nil if it is off
	servers []*daemon.Server // in the order in which they are stopped
}

// load reads the policy and the certificate.
func (r *runner) load(ctx context.Context) (err error) {
	if r.usesTLS() {
		r.security, err = daemon.LoadSecurity(ctx, r.TLSCert, r.TLSKey, "")
		if err != nil {
			return err
		}
	}
	name := r.Policy
	switch name {
	case off:
		return nil
	case "":
		name, r.data = "the default policy", []byte(demoPolicy)
	default:
		text, err := daemon.ReadUntil(ctx, name)
		if err != nil {
			return err
		}
		r.data = []byte(text)
	}
	r.policy, err = cli.ParsePolicyFile(name, r.data)
	return err
}

// dial connects to Redis, if there is a flag for it. The proxy also starts without the server.
func (r *runner) dial(context.Context) (err error) {
	r.redis, r.store, err = r.Redis.Open(r.Log, redis.WithTimeout(r.RedisTimeout))
	return err
}

// listen opens all ports before any server starts, so that a port in use is an error at once.
func (r *runner) listen(context.Context) (err error) {
	if r.proxyListener, err = daemon.Listen("--listen", r.Listen); err != nil {
		return err
	}
	if r.Admin != off {
		if r.adminListener, err = daemon.Listen("--admin", r.Admin); err != nil {
			return err
		}
	}
	if r.usesDemo() {
		r.demoListener, err = daemon.Listen("demo upstream", "127.0.0.1:0")
	}
	return err
}

// close closes what is open.
func (r *runner) close() {
	for _, l := range []net.Listener{r.proxyListener, r.adminListener, r.demoListener} {
		if l != nil {
			_ = l.Close() // it is closed already, or has not accepted anything
		}
	}
	if r.redis != nil {
		r.redis.Close()
	}
}

// build makes the handlers and their servers.
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
	if r.policy != nil {
		daemon.LogWarnings(r.Log.With("file", r.policyName()), "policy", r.policy.Warnings())
	}
	r.logRisks()
	add := func(l net.Listener, h http.Handler) *daemon.Server {
		s := daemon.NewServer(l, h, r.proxy.errors)
		r.servers = append(r.servers, s)
		return s
	}
	rules, err := clientaddr.New(c.Client.Trusted, c.Client.IPv4Bits, c.Client.IPv6Bits)
	if err != nil {
		return err
	}
	r.front = newConnections(r.proxyListener, r.PerAddress, rules, r.connectionRefused)
	configure(add(r.front, r.proxy), r.clientFlags, r.security)
	if r.adminListener != nil {
		behind := "your upstream"
		if r.usesDemo() {
			behind = "the demo upstream"
		}
		demo := ""
		if r.usesDemo() && !r.usesTLS() {
			demo = r.url()
		}
		r.admin = admin.New(admin.Config{
			Limiter: r.proxy.Limiter, Metrics: r.proxy.Metrics.Handler(), FormatKey: r.proxy.formatKey,
			Title: "tb proxy", Where: "in front of " + behind + ", at " + r.url(),
			Demo: demo,
		})
		add(r.adminListener, r.admin)
	}
	if r.usesDemo() {
		add(r.demoListener, http.HandlerFunc(demoUpstream))
	}
	return nil
}

func (r *runner) connectionRefused(network netip.Addr) {
	r.proxy.Metrics.ConnectionRefused()
	r.proxy.errors.Warn("too many connections", "client", network.String(), "most", r.PerAddress)
}

// url returns the URL of the proxy.
func (r *runner) url() string {
	scheme := "http://"
	if r.usesTLS() {
		scheme = "https://"
	}
	return scheme + daemon.Address(r.proxyListener)
}

// serve serves until ctx is done or a server fails. Meanwhile it reloads the policy.
func (r *runner) serve(ctx context.Context) error {
	daemon.RedirectStandardLog(r.proxy.errors)
	tasks := []func(context.Context){r.reload}
	if r.state != nil {
		ticker := time.NewTicker(r.Interval)
		defer ticker.Stop()
		tasks = append(tasks, func(ctx context.Context) { r.state.run(ctx, ticker.C) })
	}
	if r.admin != nil {
		tasks = append(tasks, r.admin.Run)
	}
	defer daemon.Background(ctx, tasks...)()
	failed := make(chan error, len(r.servers))
	for _, s := range r.servers {
		s.Start(failed)
	}
	adminAddress := ""
	if r.adminListener != nil {
		adminAddress = daemon.Address(r.adminListener)
	}
	r.printBanner(r.Stdout, r.url(), adminAddress)
	select {
	case <-ctx.Done():
	case err := <-failed:
		r.stopWaiting(0)
		r.stop(time.Now().Add(r.Shutdown))
		return errors.Join(err, r.saveState())
	}
	r.Log.Info("shutting down", "at_most", r.Delay+r.Shutdown)
	r.stop(r.drain(r.front, failed))
	return r.saveState()
}

// saveState saves the state, if there is a file for it, after the last request.
func (r *runner) saveState() error {
	if r.state == nil {
		return nil
	}
	if err := r.state.save(); err != nil {
		return fmt.Errorf("--state: %w", err)
	}
	return nil
}

// reload reads the policy file and the files of TLS when they change and on SIGHUP, until ctx is
// done.
func (r *runner) reload(ctx context.Context) {
	policy := &daemon.Watcher{
		Read: func() (string, error) { return "", nil },
		Apply: func(daemon.Content, string) {
			r.Log.Info("SIGHUP: there is no policy file to read again")
		},
	}
	if r.fromFile() {
		policy = (&reloader{proxy: r.proxy, file: r.Policy}).watcher()
		policy.Applied = daemon.Content{Text: string(r.data)}
	}
	watchers := []*daemon.Watcher{policy}
	if r.security != nil {
		watchers = append(watchers, r.security.Watcher(r.Log))
	}
	daemon.Watch(ctx, r.Hangups, watchers...)
}

// stop stops the servers. Requests to the proxy are cut off at the end. The proxy is the first,
// because its requests may need the other servers.
func (r *runner) stop(end time.Time) {
	grace := time.Until(end)
	for i, s := range r.servers {
		if err := s.Stop(grace); err != nil {
			r.Log.Warn("requests were cut off", "server", s.Listener.Addr().String(), "error", err)
		}
		if i == 0 {
			r.proxy.waitCutOff()
			grace = r.Shutdown
		}
	}
}

// stopWaiting refuses the requests that would still wait for their tokens when half of the shutdown
// timeout is over. The upstream has the other half. The timeout begins after the given time.
func (r *runner) stopWaiting(after time.Duration) {
	r.proxy.Limiter.StopWaiting(time.Now().Add(after + r.Shutdown/2))
}
