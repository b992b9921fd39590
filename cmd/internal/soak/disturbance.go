package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"syscall"
	"time"
)

// disturbance is an event of the schedule.
type disturbance struct {
	name    string
	restart bool      // of servers: in the first half of a run only
	servers []*server // that the event concerns
	kinds   []string  // the errors that it explains
	refills bool      // it may fill all buckets once
	do      func(ctx context.Context) error
}

// disturbances returns the events in their order. Restarts come first, so that a short run has
// them in its first half.
func (s *soak) disturbances() []disturbance {
	proxy, service := s.servers[0:1], s.servers[2:3]
	shared := []*server{s.servers[1], s.servers[3]}
	secured := []*server{s.servers[0], s.servers[2]}
	var reboot []string // a command that starts a process with another monotonic clock
	if hasTimeNamespaces() {
		reboot = []string{"unshare", "--time", "--monotonic", "100000"}
	}
	all := []disturbance{
		{name: "limits change: the files", servers: s.servers,
			do: func(ctx context.Context) error { return s.changeLimits(ctx, false) }},
		{name: "tb-proxy with --state: SIGTERM and start", restart: true, servers: proxy,
			kinds: []string{refused}, do: s.restarts(proxy, syscall.SIGTERM, reboot...)},
		{name: "certificates rotate", servers: secured,
			do: func(ctx context.Context) error { return s.rotate(ctx, secured) }},
		{name: "tb-rls in memory: SIGTERM and start", restart: true, servers: service,
			kinds: []string{refused}, refills: true, do: s.restarts(service, syscall.SIGTERM)},
		{name: "Redis stops and goes on", servers: shared, kinds: []string{undecided}, do: s.stopRedis},
		{name: "tb-proxy with --state: SIGKILL and start", restart: true, servers: proxy,
			kinds: []string{refused, lost}, refills: true, do: s.restarts(proxy, os.Kill)},
		{name: "both with --redis: SIGTERM and start", restart: true, servers: shared,
			kinds: []string{refused}, do: s.restarts(shared, syscall.SIGTERM)},
		{name: "limits change: the files and SIGHUP", servers: s.servers,
			do: func(ctx context.Context) error { return s.changeLimits(ctx, true) }},
		{name: "Redis is killed and starts empty", servers: shared, kinds: []string{undecided},
			refills: true, do: s.killRedis},
		{name: "limits with an error", servers: s.servers, do: s.breakLimits},
		{name: "Redis forgets its scripts", servers: shared, do: s.command("SCRIPT FLUSH")},
		{name: "Redis closes its connections", servers: shared, kinds: []string{undecided},
			do: s.command("CLIENT KILL TYPE normal")},
	}
	if s.redis.clock == nil {
		return all
	}
	setClock := func(ahead time.Duration) func(context.Context) error {
		return func(ctx context.Context) error { return s.redis.setClock(ctx, ahead) }
	}
	return append(all,
		disturbance{name: "the clock of Redis is set 10 s forward", servers: shared,
			kinds: []string{undecided}, refills: true, do: setClock(10 * time.Second)},
		disturbance{name: "the clock of Redis is set 10 s back", servers: shared,
			kinds: []string{undecided}, refills: true, do: setClock(0)},
	)
}

// disturb makes one event after another, until ctx is done.
func (s *soak) disturb(ctx context.Context) {
	ticker := time.NewTicker(s.pause)
	defer ticker.Stop()
	all := s.disturbances()
	for i := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for all[i%len(all)].restart && s.now() > s.duration/2 {
			i++
		}
		if s.duration-s.now() > s.pause/2 { // it has time to end
			s.happen(ctx, all[i%len(all)])
		}
		i++
	}
}

// happen makes an event, and records it when it no longer explains errors.
func (s *soak) happen(ctx context.Context, d disturbance) {
	begin := s.now()
	var windows []*window
	var ends []func(time.Duration)
	for _, sv := range d.servers {
		windows = append(windows, sv.expect(begin, d.kinds))
		if d.refills {
			var full [rules]float64
			for i := range full {
				full[i] = either(versions[0][i], versions[1][i]).capacity
			}
			ends = append(ends, sv.give(begin, full))
		}
	}
	err := d.do(ctx)
	end := s.now()
	for _, done := range ends {
		done(end)
	}
	for i, sv := range d.servers {
		sv.mu.Lock()
		windows[i].end = end + s.grace()
		sv.mu.Unlock()
	}
	if err == nil {
		err = sleep(ctx, s.grace())
	}
	e := event{Name: d.name, Seconds: begin.Seconds(), Took: (end - begin).Seconds(),
		Errors: make(map[string]int)}
	for i, sv := range d.servers {
		sv.mu.Lock()
		for kind, n := range windows[i].counts {
			e.Errors[sv.name+" "+kind] += n
		}
		e.Recovered = max(e.Recovered, (windows[i].last - end).Seconds())
		sv.mu.Unlock()
	}
	if err != nil && ctx.Err() == nil {
		s.fault("the event "+d.name, err.Error())
	}
	log.Printf("%s: %.1f s, %v", d.name, e.Took, e.Errors)
	s.records.add(func() { s.records.events = append(s.records.events, e) })
}

// restarts returns a function that stops servers with a signal and starts them again, with a
// command in front.
func (s *soak) restarts(
	servers []*server, signal os.Signal, front ...string,
) func(context.Context) error {
	return func(context.Context) error {
		for _, sv := range servers {
			if err := sv.stop(signal); err != nil {
				return err
			}
			// The end of the run does not keep the server from its start.
			if err := sv.begin(context.Background(), front...); err != nil {
				return err
			}
		}
		return nil
	}
}

// changeLimits puts the other limits in force. From the change of the files until all servers have
// seen it, either limit may be in force. A full bucket in Redis is full under a larger capacity,
// too.
func (s *soak) changeLimits(ctx context.Context, hangup bool) error {
	old := versions[s.version]
	s.version = 1 - s.version
	next := versions[s.version]
	var both [rules]limit
	var more [rules]float64
	for i := range both {
		both[i] = either(old[i], next[i])
		more[i] = both[i].capacity - old[i].capacity
	}
	begin := s.now()
	var ends []func(time.Duration)
	for _, sv := range s.servers {
		sv.limits(begin, both)
		if sv.redis {
			ends = append(ends, sv.give(begin, more))
		}
	}
	if err := s.writeLimits(); err != nil {
		return err
	}
	for _, sv := range s.servers {
		if hangup {
			if err := sv.signal(syscall.SIGHUP); err != nil {
				return err
			}
		}
		what := fmt.Sprintf("%s has limits %d", sv.name, s.version)
		if err := await(ctx, what, func() bool {
			return sv.hasLimit(ctx, next[perClient])
		}); err != nil {
			return err
		}
	}
	for _, done := range ends {
		done(s.now())
	}
	for _, sv := range s.servers {
		sv.limits(s.now(), next)
	}
	return nil
}

// breakLimits writes files with errors, and then the limits in force again.
func (s *soak) breakLimits(ctx context.Context) error {
	if err := s.writeFiles("{", "domain:"); err != nil {
		return err
	}
	if err := s.awaitReload(ctx, 0); err != nil {
		return err
	}
	if err := s.writeLimits(); err != nil {
		return err
	}
	return s.awaitReload(ctx, 1)
}

// awaitReload waits until the last reload of all servers has succeeded (1) or not (0).
func (s *soak) awaitReload(ctx context.Context, success float64) error {
	for _, sv := range s.servers {
		if err := await(ctx, fmt.Sprintf("%s has %s %v", sv.name, sv.reloaded, success), func() bool {
			m, err := sv.scrape(ctx)
			return err == nil && m.sum(sv.reloaded, "") == success
		}); err != nil {
			return err
		}
	}
	return nil
}

// rotate replaces the certificate, and waits until new clients see it.
func (s *soak) rotate(ctx context.Context, servers []*server) error {
	if err := s.authority.issue(); err != nil {
		return err
	}
	for _, sv := range servers {
		if err := await(ctx, sv.name+" has the new certificate", func() bool {
			return s.authority.shows(sv.address)
		}); err != nil {
			return err
		}
	}
	return nil
}

// grace is how long after its end an event explains errors: clients connect again, and the breaker
// of Redis asks four times a second.
func (s *soak) grace() time.Duration { return min(3*time.Second, s.pause/2) }

// outage is how long Redis is away.
func (s *soak) outage() time.Duration { return min(3*time.Second, s.pause/4) }

func (s *soak) stopRedis(ctx context.Context) error {
	if err := s.redis.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	_ = sleep(ctx, s.outage()) // Redis goes on also at the end of the run
	return s.redis.signal(syscall.SIGCONT)
}

func (s *soak) killRedis(ctx context.Context) error {
	if err := s.redis.stop(os.Kill); err != nil {
		return err
	}
	_ = sleep(ctx, s.outage())
	return s.redis.begin(context.WithoutCancel(ctx))
}

// command returns a function that sends a command to Redis.
func (s *soak) command(text string) func(context.Context) error {
	return func(context.Context) error {
		_, err := s.redis.do(text, 1)
		return err
	}
}
