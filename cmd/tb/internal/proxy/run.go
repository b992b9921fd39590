package proxy

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/admin"
	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/cidr"
	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/policyfile"
	"github.com/seed-181794aa/ratelimit/httplimit"
)

// runner is a command that is being run.
type runner struct {
	*Command
	log *slog.Logger

	data   []byte // of the policy file
	policy *httplimit.Policy

	forProxy, forAdmin, forDemo net.Listener // nil for what is not wanted

	proxy   *Proxy
	live    *admin.Server
	servers []*server // in the order in which they are stopped
}

// load reads the policy.
func (r *runner) load() (err error) {
	name := r.Policy
	switch name {
	case policyOff:
		return nil
	case "":
		name, r.data = "the default policy", []byte(demoPolicy)
	default:
		if r.data, err = os.ReadFile(name); err != nil {
			return err
		}
	}
	policy, err := policyfile.Parse(r.data)
	if err != nil {
		return fmt.Errorf("%s is not accepted:\n%s", name,
			strings.Join(policyfile.Problems(err), "\n"))
	}
	warn(r.log, name, policy.Warnings())
	r.policy = policy
	return nil
}

// listen opens the ports, so that nothing is started if one of them is taken.
func (r *runner) listen() (err error) {
	open := func(flag, address string) net.Listener {
		if err != nil {
			return nil
		}
		var l net.Listener
		if l, err = net.Listen("tcp", address); err != nil {
			err = fmt.Errorf("%s: %w (port 0 is any free one)", flag, err)
			return nil
		}
		return l
	}
	r.forProxy = open("--listen", r.Listen)
	if r.Admin != adminOff {
		r.forAdmin = open("--admin", r.Admin)
	}
	if r.demo() {
		r.forDemo = open("demo upstream", "127.0.0.1:0")
	}
	return err
}

// close closes the ports, if serving does not begin.
func (r *runner) close() {
	for _, l := range []net.Listener{r.forProxy, r.forAdmin, r.forDemo} {
		if l != nil {
			_ = l.Close() // nothing was done with it
		}
	}
}

// build makes the handlers and their servers.
func (r *runner) build() (err error) {
	c := Config{
		Upstream: &r.Upstream.URL, PreserveHost: r.PreserveHost, Timeout: r.Timeout,
		Policy: r.policy, Trusted: cidr.Prefixes(r.Trusted), Core: r.core(),
		Silent: r.Fields == "refused", Log: r.log, Access: r.AccessLog, ShowKeys: r.ShowKeys,
	}
	if r.demo() {
		c.Upstream = &url.URL{Scheme: "http", Host: address(r.forDemo)}
	}
	if r.forAdmin != nil {
		c.Refused = func(req *http.Request, e httplimit.Event) { r.live.Refused(req, e) }
	}
	if r.proxy, err = New(c); err != nil {
		return err
	}
	add := func(l net.Listener, h http.Handler) {
		r.servers = append(r.servers, newServer(l, h, r.log))
	}
	add(r.forProxy, r.proxy)
	if r.forAdmin != nil {
		r.live = admin.New(admin.Config{
			Limiter: r.proxy.Limiter, Metrics: r.proxy.Metrics.Handler(), Key: r.proxy.Key,
			Proxy: "http://" + address(r.forProxy), Demo: r.demo(),
		})
		add(r.forAdmin, r.live)
	}
	if r.demo() {
		add(r.forDemo, http.HandlerFunc(demoUpstream))
	}
	return nil
}

// serve serves until ctx ends or a server fails. Meanwhile it keeps the policy that of the
// file.
func (r *runner) serve(ctx context.Context, stdout io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var background sync.WaitGroup
	defer background.Wait()
	defer cancel()

	if r.fromFile() {
		hangups := make(chan os.Signal, 1)
		signal.Notify(hangups, syscall.SIGHUP)
		defer signal.Stop(hangups)
		background.Go(func() { r.reload(ctx, hangups) })
	}
	if r.live != nil {
		background.Go(func() { r.live.Run(ctx) })
	}
	failed := make(chan error, len(r.servers))
	for _, s := range r.servers {
		s.start(failed)
	}
	adminAddress := ""
	if r.forAdmin != nil {
		adminAddress = address(r.forAdmin)
	}
	r.next(stdout, address(r.forProxy), adminAddress)
	var err error
	select {
	case <-ctx.Done():
		r.log.Info("shutting down", "at_most", r.Shutdown)
	case err = <-failed:
	}
	r.stop()
	return err
}

// fromFile says whether the policy is that of a file.
func (c *Command) fromFile() bool { return c.Policy != "" && c.Policy != policyOff }

// reload keeps the policy that of the file until the end of ctx.
func (r *runner) reload(ctx context.Context, hangups <-chan os.Signal) {
	l := &reloader{proxy: r.proxy, file: r.Policy}
	l.last = content{text: string(r.data)}
	l.tried = l.last
	var ticks <-chan time.Time
	if info, err := os.Stat(r.Policy); err != nil || info.Mode().IsRegular() {
		ticker := time.NewTicker(period)
		defer ticker.Stop()
		ticks = ticker.C
	} // or else it is a pipe, which can be read only once
	l.run(ctx, hangups, ticks)
}

// stop stops the servers: the proxy first, so that the others are there as long as they are
// needed.
func (r *runner) stop() {
	for i, s := range r.servers {
		if err := s.stop(r.Shutdown); err != nil {
			r.log.Warn("requests were cut off", "server", s.listener.Addr().String(), "error", err)
		}
		if i == 0 {
			r.proxy.drain()
		}
	}
}

// address returns where a listener is reached from this machine.
func address(l net.Listener) string {
	a, ok := l.Addr().(*net.TCPAddr)
	if !ok || !a.IP.IsUnspecified() {
		return l.Addr().String()
	}
	return fmt.Sprintf("localhost:%d", a.Port)
}
