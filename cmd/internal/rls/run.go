package rls

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/cmd/internal/admin"
	"github.com/seed-181794aa/ratelimit/cmd/internal/daemon"
	"github.com/seed-181794aa/ratelimit/cmd/internal/rls/config"
	"github.com/seed-181794aa/ratelimit/httplimit"
)

// runner is a Command under way. Run calls load, dial, listen, build, serve and close in this
// order.
type runner struct {
	*Command
	*daemon.Process

	text     string // of the configuration
	config   *config.Config
	security *daemon.Security // nil without TLS
	client   rueidis.Client   // nil without --redis
	store    httplimit.Store  // nil without --redis

	listener, adminListener net.Listener // the second may be nil

	service *Service
	metrics *metrics
	server  *server
	page    *admin.Server // nil if it is off, and so admin
	admin   *daemon.Server
}

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
	read := func() (string, error) { return readFiles(r.Config) }
	r.text, err = daemon.AwaitRead(ctx, r.Config, read)
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	if r.config, err = parseFiles(r.text, r.MergeDomains); err != nil {
		return fmt.Errorf("--config is not accepted:\n%w", err)
	}
	return nil
}

// dial connects to Redis, if there is a flag for it. The service also starts without the server.
func (r *runner) dial(context.Context) (err error) {
	r.client, r.store, err = r.Redis.Open(r.Log, storeOptions(r.RedisTimeout, r.RedisFailure)...)
	return err
}

// listen opens the ports before a server starts, so that a port in use is an error at once.
func (r *runner) listen(context.Context) (err error) {
	if r.listener, err = listen(r.Listen); err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	if r.Admin == off {
		return nil
	}
	r.adminListener, err = daemon.Listen("--admin", r.Admin)
	return err
}

// close closes what is open.
func (r *runner) close() {
	for _, l := range []net.Listener{r.listener, r.adminListener} {
		if l != nil {
			_ = l.Close() // it is closed already, or has not accepted anything
		}
	}
	if r.client != nil {
		r.client.Close()
	}
}

// build makes the service and the servers.
func (r *runner) build(context.Context) error {
	c := Config{
		LimiterOptions: r.limiterOptions(), Shadow: r.ShadowMode, Quota: r.QuotaMode,
		Fields: r.Fields, Names: [3]string(r.FieldNames),
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
		daemon.LogWarnings(r.Log, "configuration", r.config.Warnings)
	}
	r.metrics = newMetrics(r.service, r.LostLines)
	if r.UpstreamMetrics {
		r.metrics.addUpstream()
	}
	r.server = newServer(r.service, r.metrics, r.connectionFlags, tlsConfig(r.security), r.Throttled)
	r.server.health.set(r.config != nil)
	if r.adminListener != nil {
		daemon.WarnOfAdmin(r.Log, r.adminListener, r.Admin)
		r.page = admin.New(admin.Config{
			Limiter: r.service, Metrics: r.metrics.Handler(), FormatKey: r.formatKey,
			Title: "tb-rls", Where: "a rate limit service at " + r.address(), More: r.probes(),
		})
		r.admin = daemon.NewServer(r.adminListener, r.page, r.Throttled)
	}
	return nil
}

// serve serves until ctx is done or a server fails. Meanwhile it reloads the configuration.
func (r *runner) serve(ctx context.Context) error {
	collectSeldom()
	daemon.RedirectStandardLog(r.Throttled)
	tasks := []func(context.Context){r.reload}
	if r.admin != nil {
		tasks = append(tasks, r.page.Run)
	}
	defer daemon.Background(ctx, tasks...)()

	failed := make(chan error, 2)
	go func() {
		if err := r.server.Serve(r.listener); err != nil {
			failed <- err
		}
	}()
	if r.admin != nil {
		r.admin.Start(failed)
	}
	r.printBanner(r.Stdout)
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		r.Log.Info("shutting down", "at_most", r.Delay+r.Shutdown)
		r.server.health.Shutdown()
		select {
		case <-time.After(r.Delay):
		case err = <-failed:
		}
	}
	if r.server.stop(r.Shutdown) {
		r.Log.Warn("requests were cut off")
	}
	if r.admin != nil {
		err = errors.Join(err, r.admin.Stop(r.Shutdown))
	}
	return err
}

// reload reads the configuration and the files of TLS when they change and on SIGHUP, or follows
// the servers of xDS, until ctx is done.
func (r *runner) reload(ctx context.Context) {
	var watchers []*daemon.Watcher
	if r.Config != "" {
		watchers = append(watchers, &daemon.Watcher{
			Read: func() (string, error) { return readFiles(r.Config) },
			Apply: func(c daemon.Content, why string) {
				if err := r.apply(c, why); err != nil {
					daemon.LogRejected(r.Log, "configuration", why, strings.Split(err.Error(), "\n"))
				}
			},
			Applied: daemon.Content{Text: r.text},
		})
	} else {
		f := &follower{xdsFlags: r.xdsFlags, log: r.Throttled, apply: func(c daemon.Content) error {
			return r.apply(c, "xDS")
		}}
		var following sync.WaitGroup
		defer following.Wait()
		following.Go(func() { f.run(ctx) })
	}
	if r.security != nil {
		watchers = append(watchers, r.security.Watcher(r.Log))
	}
	daemon.Watch(ctx, r.Hangups, watchers...)
}

// apply puts a configuration in force if it has no errors.
func (r *runner) apply(c daemon.Content, why string) error {
	var next *config.Config
	err := c.Err()
	if err == nil {
		next, err = parseFiles(c.Text, r.MergeDomains)
	}
	if err == nil {
		err = r.service.SetConfig(next)
	}
	r.metrics.Reload(err == nil)
	if err != nil {
		return err
	}
	r.server.health.set(true)
	r.Log.Info("configuration reloaded", "because", why, "domains", next.Domains(),
		"rules", len(next.Rules))
	daemon.LogWarnings(r.Log, "configuration", next.Warnings)
	return nil
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
