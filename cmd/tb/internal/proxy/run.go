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

// runner is a Command under way. Run calls load, listen, build and serve in this order.
type runner struct {
	*Command
	log *slog.Logger

	data   []byte // of the policy file
	policy *httplimit.Policy

	proxyListener, adminListener, demoListener net.Listener // the last two may be nil

	proxy   *Proxy
	admin   *admin.Server // nil if it is off
	servers []*server     // in the order in which they are stopped
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
	logWarnings(r.log, name, policy)
	r.policy = policy
	return nil
}

// listen opens all ports before any server starts, so that a port in use is an error at once.
func (r *runner) listen() (err error) {
	open := func(flag, address string) net.Listener {
		if err != nil {
			return nil
		}
		var l net.Listener
		if l, err = net.Listen("tcp", address); err != nil {
			err = fmt.Errorf("%s: %w (use port 0 for any free port)", flag, err)
			return nil
		}
		return l
	}
	r.proxyListener = open("--listen", r.Listen)
	if r.Admin != adminOff {
		r.adminListener = open("--admin", r.Admin)
	}
	if r.usesDemo() {
		r.demoListener = open("demo upstream", "127.0.0.1:0")
	}
	return err
}

// close closes the ports after an error in listen or build.
func (r *runner) close() {
	for _, l := range []net.Listener{r.proxyListener, r.adminListener, r.demoListener} {
		if l != nil {
			_ = l.Close() // the listener has not accepted anything
		}
	}
}

// build makes the handlers and their servers.
func (r *runner) build() (err error) {
	c := Config{
		Upstream: &r.Upstream.URL, PreserveHost: r.PreserveHost, Timeout: r.Timeout,
		Policy: r.policy, Trusted: cidr.Prefixes(r.Trusted), LimiterOptions: r.limiterOptions(),
		SilentGrants: r.Fields == "refused", Log: r.log, Access: r.AccessLog, ShowKeys: r.ShowKeys,
	}
	if r.usesDemo() {
		c.Upstream = &url.URL{Scheme: "http", Host: address(r.demoListener)}
	}
	if r.adminListener != nil {
		c.Refused = func(req *http.Request, e httplimit.Event) { r.admin.Refused(req, e) }
	}
	if r.proxy, err = New(c); err != nil {
		return err
	}
	add := func(l net.Listener, h http.Handler) {
		r.servers = append(r.servers, newServer(l, h, r.log))
	}
	add(r.proxyListener, r.proxy)
	if r.adminListener != nil {
		r.admin = admin.New(admin.Config{
			Limiter: r.proxy.Limiter, Metrics: r.proxy.Metrics.Handler(), FormatKey: r.proxy.formatKey,
			Proxy: "http://" + address(r.proxyListener), Demo: r.usesDemo(),
		})
		add(r.adminListener, r.admin)
	}
	if r.usesDemo() {
		add(r.demoListener, http.HandlerFunc(demoUpstream))
	}
	return nil
}

// serve serves until ctx is done or a server fails. Meanwhile it reloads the policy.
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
	if r.admin != nil {
		background.Go(func() { r.admin.Run(ctx) })
	}
	failed := make(chan error, len(r.servers))
	for _, s := range r.servers {
		s.start(failed)
	}
	adminAddress := ""
	if r.adminListener != nil {
		adminAddress = address(r.adminListener)
	}
	r.printBanner(stdout, address(r.proxyListener), adminAddress)
	var err error
	select {
	case <-ctx.Done():
		r.log.Info("shutting down", "at_most", r.Shutdown)
	case err = <-failed:
	}
	r.stop()
	return err
}

// printBanner prints the addresses that serve and commands to try. admin may be "".
func (c *Command) printBanner(w io.Writer, proxy, admin string) {
	behind := c.Upstream.String()
	if c.usesDemo() {
		behind = "a demo upstream"
	}
	fmt.Fprintf(w, "Listening on http://%s, with %s behind it.\n", proxy, behind)
	switch c.Policy {
	case "":
		fmt.Fprintln(w, "Each address gets 5 requests a second, and 10 at once.")
	case policyOff:
		fmt.Fprintln(w, "Nothing is limited.")
	default:
		fmt.Fprintf(w, "The limits come from %s, which is read again when it changes.\n", c.Policy)
	}
	request := "one request"
	if c.Policy == "" && c.Fields != "refused" {
		request += "; the header shows what is left of the limit"
	}
	fmt.Fprintf(w, `
Try it in another terminal:

  curl -i http://%s/     # %s
`, proxy, request)
	if c.Policy == "" {
		fmt.Fprintf(w, `  for i in $(seq 15); do   # a burst: about 10 pass, the rest get 429
    curl -s -o /dev/null -w '%%{http_code}\n' http://%s/
  done
`, proxy)
	}
	if admin != "" {
		fmt.Fprintf(w, `  curl http://%[1]s/metrics  # for Prometheus

Watch the buckets drain and fill in a browser: http://%[1]s/
`, admin)
	}
	if c.usesDemo() {
		fmt.Fprintln(w, `
To limit your own server, run this again with its URL and a policy:

  --upstream http://localhost:3000 --policy policy.json`)
	}
	if c.Policy == "" {
		fmt.Fprintf(w, "\nThis is the policy in force. Start yours from it:\n\n%s", demoPolicy)
	}
	fmt.Fprintln(w, "\nCtrl-C stops the proxy.")
}

// reload applies changes of the policy file until ctx is done.
func (r *runner) reload(ctx context.Context, hangups <-chan os.Signal) {
	started := content{text: string(r.data)}
	l := &reloader{proxy: r.proxy, file: r.Policy, seen: started, applied: started}
	var ticks <-chan time.Time
	if info, err := os.Stat(r.Policy); err != nil || info.Mode().IsRegular() {
		ticker := time.NewTicker(pollInterval)
		defer ticker.Stop()
		ticks = ticker.C
	} // otherwise it is a pipe, which can be read only once
	l.run(ctx, hangups, ticks)
}

// stop stops the servers. The proxy is the first, because its requests may need the others.
func (r *runner) stop() {
	for i, s := range r.servers {
		if err := s.stop(r.Shutdown); err != nil {
			r.log.Warn("requests were cut off", "server", s.listener.Addr().String(), "error", err)
		}
		if i == 0 {
			r.proxy.waitUpgraded()
		}
	}
}

// address returns the host and port at which this machine reaches a listener.
func address(l net.Listener) string {
	a, ok := l.Addr().(*net.TCPAddr)
	if !ok || !a.IP.IsUnspecified() {
		return l.Addr().String()
	}
	return fmt.Sprintf("localhost:%d", a.Port)
}
