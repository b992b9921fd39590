package rls

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"

	"github.com/seed-181794aa/ratelimit/cmd/internal/admin"
	"github.com/seed-181794aa/ratelimit/cmd/internal/daemon"
	"github.com/seed-181794aa/ratelimit/cmd/internal/rls/config"
	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/internal/textfile"
)

// runner is a Command under way. Run calls load, dial, listen, build and serve in this order.
type runner struct {
	*Command
	*daemon.Process

	text     string // of the configuration
	config   *config.Config
	security *daemon.Security // nil without TLS
	store    httplimit.Store  // nil without --redis

	listener, adminListener net.Listener // the second may be nil

	service *Service
	metrics *metrics
	server  *server
	page    *admin.Server // nil if it is off
	servers []daemon.Stoppable
}

func (r *runner) read() (string, error) { return readFiles(r.Config) }

// load reads the configuration and the files of TLS.
func (r *runner) load(ctx context.Context) (err error) {
	if r.TLSCert != "" {
		r.security, err = daemon.LoadSecurity(ctx, r.TLSCert, r.TLSKey, r.TLSClientCA)
		if err != nil {
			return err
		}
	}
	if r.Config == "" {
		return nil
	}
	if r.text, err = textfile.Await(ctx, r.Config, r.read); err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	if r.config, err = parseFiles(r.text, r.MergeDomains); err != nil {
		return fmt.Errorf("--config is not accepted:\n%w", err)
	}
	return nil
}

// check reads the configuration, and prints its warnings. The error has its errors.
func (r *runner) check(ctx context.Context) error {
	err := r.load(ctx)
	if r.config != nil {
		for _, text := range r.config.Warnings {
			fmt.Fprintln(r.Stdout, "warning: "+text)
		}
	}
	if err == nil {
		fmt.Fprintf(r.Stdout, "%s: %d rules in %d domains, no errors\n", r.Config, len(r.config.Rules),
			r.config.Domains())
	}
	return err
}

// dial connects to Redis, if there is a flag for it. The service also starts without the server.
func (r *runner) dial(context.Context) (err error) {
	r.store, err = r.Redis.Open(r.Process, storeOptions(r.RedisTimeout, r.RedisFailure)...)
	return err
}

// listen opens the ports before a server starts, so that a port in use is an error at once.
func (r *runner) listen(context.Context) (err error) {
	if r.listener, err = daemon.Listen(r.Listen); err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	r.OnClose(func() { _ = r.listener.Close() }) // it is closed already, or has not accepted anything
	if r.Admin == off {
		return nil
	}
	r.adminListener, err = r.ListenTCP("--admin", r.Admin)
	return err
}

// build makes the service and the servers.
func (r *runner) build(context.Context) error {
	c := Config{
		LimiterOptions: r.limiterOptions(), Shadow: r.ShadowMode, Quota: r.QuotaMode,
		Weights: r.Hits == "weight", Fields: r.Fields, Names: [3]string(r.FieldNames),
		Policy: r.PolicyField, X: r.XRateLimit, Metadata: r.DynamicMetadata, Log: r.Throttled,
		Store: r.store, StoreErrors: r.RedisFailure == "error",
	}
	if r.adminListener != nil {
		c.Refused = func(f Refusal) { r.page.RefusedBucket(f.Domain+"/"+f.Rule, keyOf(f), f.Level) }
	}
	r.service = New(c)
	if r.config != nil {
		if err := r.service.SetConfig(r.config); err != nil {
			return fmt.Errorf("--config is not accepted:\n%w", err)
		}
		r.reloader().LogWarnings(r.config.Warnings)
	}
	r.metrics = newMetrics(r.service, r.LostLines)
	if r.UpstreamMetrics {
		r.metrics.addUpstream()
	}
	r.server = newServer(r.listener, r.service, r.metrics, r.connectionFlags, r.security,
		r.Throttled)
	r.server.health.set(r.config != nil)
	r.servers = append(r.servers, r.server)
	if r.adminListener != nil {
		daemon.WarnOfAdmin(r.Log, r.adminListener, r.Admin)
		r.page = admin.New(admin.Config{
			Limiter: r.service, Metrics: r.metrics.Handler(), FormatKey: r.formatKey,
			Title: "tb-rls", Where: "a rate limit service at " + r.address(), More: r.probes(),
		})
		r.servers = append(r.servers, daemon.NewServer(r.adminListener, r.page, r.Throttled))
	}
	return nil
}

// serve serves until ctx is done or a server fails. Meanwhile it reloads the configuration.
func (r *runner) serve(ctx context.Context) error {
	collectSeldom()
	daemon.RedirectStandardLog(r.Throttled)
	tasks := []func(context.Context){r.reload}
	if r.page != nil {
		tasks = append(tasks, r.page.Run)
	}
	defer daemon.Background(ctx, tasks...)()
	r.printBanner(r.Stdout)
	return r.Serve(ctx, r.Delay, r.Shutdown, r.servers...)
}

// reload reads the configuration and the files of TLS when they change and on SIGHUP, or follows
// the servers of xDS, until ctx is done.
func (r *runner) reload(ctx context.Context) {
	var watchers []*textfile.Watcher
	configuration := r.reloader()
	if r.Config != "" {
		watchers = append(watchers, configuration.Watcher(r.read, r.text))
	} else {
		configuration.Log = r.Throttled
		f := &follower{xdsFlags: r.xdsFlags, reloader: configuration}
		var following sync.WaitGroup
		defer following.Wait()
		following.Go(func() { f.run(ctx) })
	}
	if r.security != nil {
		watchers = append(watchers, r.security.Watcher(r.Log))
	}
	textfile.Watch(ctx, r.Hangups, watchers...)
}

// reloader returns a reloader of the configuration.
func (r *runner) reloader() *daemon.Reloader {
	return &daemon.Reloader{What: "configuration", Log: r.Log, Apply: r.apply, Count: func(ok bool) {
		r.metrics.Reload(ok)
	}}
}

// apply puts a configuration in force if it has no errors.
func (r *runner) apply(text string) (done daemon.Applied, err error) {
	next, err := parseFiles(text, r.MergeDomains)
	if err == nil {
		err = r.service.SetConfig(next)
	}
	if err != nil {
		return done, err
	}
	r.server.health.set(true)
	return daemon.Applied{
		Attrs: []any{"domains", next.Domains(), "rules", len(next.Rules)}, Warnings: next.Warnings,
	}, nil
}

// address returns the address of the service as clients use it.
func (r *runner) address() string {
	if _, isUnix := r.listener.(*net.UnixListener); isUnix {
		return r.Listen
	}
	return daemon.Address(r.listener)
}

// printBanner prints the addresses.
func (r *runner) printBanner(w io.Writer) {
	if r.config != nil {
		fmt.Fprintf(w, "Listening on %s: %d rules in %d domains, from %s.\n", r.address(),
			len(r.config.Rules), r.config.Domains(), r.Config)
	} else {
		fmt.Fprintf(w, "Listening on %s: the rules come from %s.\n", r.address(),
			strings.Join(r.XDS, ", "))
	}
	if r.adminListener != nil {
		fmt.Fprintf(w, "Live page: http://%s/, metrics: http://%[1]s/metrics\n",
			daemon.Address(r.adminListener))
	}
	fmt.Fprintln(w, "Ctrl-C stops the service.")
}
