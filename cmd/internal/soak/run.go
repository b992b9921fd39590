package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// settings are the flags of a run.
type settings struct {
	programs, dir           string
	duration, sample, pause time.Duration
	rate                    int
}

// soak is a run.
type soak struct {
	settings
	records   *records
	redis     *redis
	authority *authority
	servers   []*server
	begin     time.Time
	version   int // of the limits in force
}

// workers is how many requests of a server are under way at most.
const workers = 8

// run runs the servers for the time of the settings, and returns the records.
func run(ctx context.Context, c settings) (*records, error) {
	s, err := newSoak(ctx, c)
	if err != nil {
		return nil, err
	}
	defer s.kill()
	ctx, cancel := context.WithTimeout(ctx, c.duration)
	defer cancel()
	s.underLoad(ctx, s.disturb)
	return s.records, s.finish()
}

// newSoak starts the servers.
func newSoak(ctx context.Context, c settings) (_ *soak, err error) {
	if c.dir, err = filepath.Abs(c.dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return nil, err
	}
	s := &soak{settings: c}
	if s.records, err = newRecords(c); err != nil {
		return nil, err
	}
	addresses, err := freeAddresses(9)
	if err != nil {
		return nil, err
	}
	if s.redis, err = newRedis(c.dir, addresses[8]); err != nil {
		return nil, err
	}
	if s.authority, err = newAuthority(c.dir); err != nil {
		return nil, err
	}
	upstream, err := serveUpstream()
	if err != nil {
		return nil, err
	}
	s.servers = newServers(c, addresses, s.redis.address, s.authority, upstream)
	if err := s.writeLimits(); err != nil {
		return nil, err
	}
	if err := s.start(ctx); err != nil {
		s.kill()
		return nil, err
	}
	s.begin = time.Now()
	return s, nil
}

// start starts Redis and the servers.
func (s *soak) start(ctx context.Context) error {
	if err := s.redis.begin(ctx); err != nil {
		return err
	}
	for _, sv := range s.servers {
		sv.limits(0, versions[s.version])
		if err := sv.begin(ctx); err != nil {
			return err
		}
	}
	return nil
}

// kill ends the processes that still run.
func (s *soak) kill() {
	s.redis.kill()
	for _, sv := range s.servers {
		sv.kill()
	}
}

// underLoad calls a function while clients send requests and the servers are sampled, until ctx is
// done and the function has returned.
func (s *soak) underLoad(ctx context.Context, f func(context.Context)) {
	var tasks sync.WaitGroup
	defer tasks.Wait()
	for _, sv := range s.servers {
		for worker := range workers {
			tasks.Go(func() { s.work(ctx, sv, worker) })
		}
	}
	tasks.Go(func() { s.sampleAll(ctx) })
	f(ctx)
}

// serveUpstream starts the upstream of the proxies, which runs until the process ends.
func serveUpstream() (url string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	upstream := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "hello\n") // this fails only if the proxy is gone
	})}
	go func() { log.Fatal(upstream.Serve(l)) }()
	return "http://" + l.Addr().String(), nil
}

// writeLimits writes the limits in force to the files of the servers.
func (s *soak) writeLimits() error {
	limits := versions[s.version]
	return s.writeFiles(policy(limits), configuration(limits))
}

func (s *soak) writeFiles(policy, config string) error {
	if err := replace(filepath.Join(s.dir, policyFile), []byte(policy)); err != nil {
		return err
	}
	return replace(filepath.Join(s.dir, configFile), []byte(config))
}

// now returns the time since the beginning.
func (s *soak) now() time.Duration { return time.Since(s.begin) }

// work sends the requests of a worker until ctx is done. A request that is under way then goes on.
func (s *soak) work(ctx context.Context, sv *server, worker int) {
	const perConnection = 200
	rng := rand.New(rand.NewPCG(uint64(worker), 1))
	c := sv.newClient(worker)
	defer c.close()
	between := time.Second * workers / time.Duration(s.rate)
	_ = sleep(ctx, between*time.Duration(worker)/workers) // the workers take turns
	ticker := time.NewTicker(between)
	defer ticker.Stop()
	for i := 1; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		s.ask(sv, c, newRequest(rng, s.now()))
		if i%perConnection == 0 {
			c.close()
		}
	}
}

// ask sends a request and records its outcome.
func (s *soak) ask(sv *server, c client, r request) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	g := grant{sent: s.now()}
	granted, err := c.ask(ctx, r)
	g.received = s.now()
	if err != nil {
		sv.failed(g, err)
		return
	}
	sv.answered(r, g, granted)
}

// hotClients are always above their limit.
const hotClients = 4

// newRequest returns a request of one of the hot clients, or of one of 300 clients that come and
// go: 30 clients come in a second, and each stays for ten.
func newRequest(rng *rand.Rand, now time.Duration) request {
	if rng.IntN(2) == 0 {
		return request{client: fmt.Sprint("192.0.2.", rng.IntN(hotClients))}
	}
	n := int(30*now.Seconds()) + rng.IntN(300)
	return request{fmt.Sprintf("10.%d.%d.%d", n>>16, n>>8&255, n&255), fmt.Sprint("tenant", n%4)}
}

// finish stops the servers, audits the rest and records the audits.
func (s *soak) finish() error {
	for _, sv := range s.servers {
		if err := sv.stop(syscall.SIGTERM); err != nil {
			s.fault(sv.name, err.Error())
		}
		sv.auditBefore(forever)
		_, faults := sv.take()
		for _, f := range faults {
			s.fault(sv.name, f)
		}
		s.records.audits = append(s.records.audits, audited{Server: sv.name, audit: sv.audited})
	}
	s.redis.kill()
	return s.records.finish(s.now())
}

// fault records an error that no event explains.
func (s *soak) fault(server, text string) {
	log.Printf("%s: %s", server, text)
	f := fault{Seconds: s.now().Seconds(), Server: server, Text: text}
	s.records.add(func() { s.records.faults = append(s.records.faults, f) })
}
