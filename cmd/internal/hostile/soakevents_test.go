package hostile

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

// event is an event of the schedule.
type event struct {
	name    string
	restart bool      // of servers: in the first half of a run only
	servers []*server // that the event concerns
	kinds   []string  // the errors that it explains
	refills bool      // it may fill all buckets once
	do      func()
}

// events returns the events in their order. Restarts come first, so that a short run has them in
// its first half.
func (s *soak) events() []event {
	proxy, service := s.servers[0:1], s.servers[2:3]
	shared := []*server{s.servers[1], s.servers[3]}
	secured := []*server{s.servers[0], s.servers[2]}
	var reboot []string // a command that starts a process with another monotonic clock
	if unshare, err := exec.LookPath("unshare"); err == nil {
		reboot = []string{unshare, "--time", "--monotonic", "100000"}
		if exec.Command(unshare, append(reboot[1:], "true")...).Run() != nil {
			reboot = nil // it has no right to
		}
	}
	command := func(text string) func() { return func() { s.redis.do(s.T, text, 1) } }
	all := []event{
		{name: "limits change: the files", servers: s.servers, do: func() { s.changeLimits(false) }},
		{name: "tb-proxy with --state: SIGTERM and start", restart: true, servers: proxy,
			kinds: []string{refused}, do: s.restarts(proxy, (*process).stop, reboot...)},
		{name: "certificates rotate", servers: secured, do: func() { s.rotate(secured) }},
		{name: "tb-rls in memory: SIGTERM and start", restart: true, servers: service,
			kinds: []string{refused}, refills: true, do: s.restarts(service, (*process).stop)},
		{name: "Redis stops and goes on", servers: shared, kinds: []string{undecided}, do: s.stopRedis},
		{name: "tb-proxy with --state: SIGKILL and start", restart: true, servers: proxy,
			kinds: []string{refused, lost}, refills: true, do: s.restarts(proxy, (*process).kill)},
		{name: "both with --redis: SIGTERM and start", restart: true, servers: shared,
			kinds: []string{refused}, do: s.restarts(shared, (*process).stop)},
		{name: "limits change: the files and SIGHUP", servers: s.servers,
			do: func() { s.changeLimits(true) }},
		{name: "Redis is killed and starts empty", servers: shared, kinds: []string{undecided},
			refills: true, do: s.killRedis},
		{name: "limits with an error", servers: s.servers, do: s.breakLimits},
		{name: "Redis forgets its scripts", servers: shared, do: command("SCRIPT FLUSH")},
		{name: "Redis closes its connections", servers: shared, kinds: []string{undecided},
			do: command("CLIENT KILL TYPE normal")},
	}
	if s.redis.clock == nil {
		return all
	}
	setClock := func(ahead time.Duration) func() { return func() { s.redis.setClock(s.T, ahead) } }
	return append(all,
		event{name: "the clock of Redis is set 10 s forward", servers: shared,
			kinds: []string{undecided}, refills: true, do: setClock(10 * time.Second)},
		event{name: "the clock of Redis is set 10 s back", servers: shared,
			kinds: []string{undecided}, refills: true, do: setClock(0)},
	)
}

// happen makes an event, and returns when it no longer explains errors. Clients connect again after
// its end, and the breaker of Redis asks four times a second.
func (s *soak) happen(e event) {
	begin := s.now()
	w := window{event: e.name, kinds: e.kinds}
	for i := range w.tokens {
		if e.refills {
			w.tokens[i] = either(versions[0][i], versions[1][i]).capacity
		}
	}
	var windows []func(time.Duration)
	for _, sv := range e.servers {
		windows = append(windows, sv.open(begin, w))
	}
	e.do()
	end := s.now()
	grace := min(3*time.Second, *pause/2)
	for _, done := range windows {
		done(end + grace)
	}
	s.Logf("after %.0f s: %s: %.1f s", begin.Seconds(), e.name, (end - begin).Seconds())
	pass(s.Context(), grace)
}

// restarts returns a function that ends servers and starts them again, with a command in front.
func (s *soak) restarts(
	servers []*server, end func(*process, *testing.T), front ...string,
) func() {
	return func() {
		for _, sv := range servers {
			end(sv.process, s.T)
			sv.start(s.T, front...)
		}
	}
}

// changeLimits puts the other limits in force. From the change of the files until all servers have
// seen it, either limit may be in force. A full bucket in Redis is full under a larger capacity,
// too.
func (s *soak) changeLimits(hangup bool) {
	old := versions[s.version]
	s.version = 1 - s.version
	next := versions[s.version]
	var both [rules]limit
	var w window
	for i := range both {
		both[i] = either(old[i], next[i])
		w.tokens[i] = both[i].capacity - old[i].capacity
	}
	begin := s.now()
	var windows []func(time.Duration)
	for _, sv := range s.servers {
		sv.limits(begin, both)
		if sv.redis {
			windows = append(windows, sv.open(begin, w))
		}
	}
	s.writeLimits()
	for _, sv := range s.servers {
		if hangup {
			sv.signal(s.T, syscall.SIGHUP)
		}
		await(s.T, "the limits of "+sv.name, func() bool { return sv.hasLimit(next[perClient]) })
	}
	for _, done := range windows {
		done(s.now())
	}
	for _, sv := range s.servers {
		sv.limits(s.now(), next)
	}
}

// breakLimits writes files with errors, and then the limits in force again.
func (s *soak) breakLimits() {
	reloaded := func(success float64) {
		for _, sv := range s.servers {
			await(s.T, "a reload of "+sv.name, func() bool {
				return sv.metric(s.T, sv.reloaded) == success
			})
		}
	}
	s.write(policyFile, "{")
	s.write(configFile, "domain:")
	reloaded(0)
	s.writeLimits()
	reloaded(1)
}

// issue replaces the certificate of the servers.
func (s *soak) issue() *testkit.Certificate {
	c := testkit.NewCertificate("127.0.0.1", s.authority)
	s.write(certFile, c.PEM)
	s.write(keyFile, c.Key)
	return c
}

// rotate replaces the certificate, and waits until new clients see it.
func (s *soak) rotate(servers []*server) {
	c := s.issue()
	for _, sv := range servers {
		await(s.T, "the new certificate of "+sv.name, func() bool {
			conn, err := tls.Dial("tcp", sv.address, s.trusted("h2"))
			if err != nil {
				return false
			}
			defer conn.Close()
			return conn.ConnectionState().PeerCertificates[0].Equal(c.Certificate)
		})
	}
}

// trusted returns the settings of a client that trusts the authority.
func (s *soak) trusted(protocols ...string) *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(s.authority.Certificate)
	return &tls.Config{RootCAs: roots, NextProtos: protocols}
}

// outage waits for as long as Redis is away.
func (s *soak) outage() { pass(s.Context(), min(3*time.Second, *pause/4)) }

func (s *soak) stopRedis() {
	err := s.redis.Process.Signal(syscall.SIGSTOP)
	s.outage()
	if err = errors.Join(err, s.redis.Process.Signal(syscall.SIGCONT)); err != nil {
		s.Fatal(err)
	}
}

func (s *soak) killRedis() {
	if err := s.redis.Process.Kill(); err != nil {
		s.Fatal(err)
	}
	s.outage()
	s.redis.start(s.T)
}
