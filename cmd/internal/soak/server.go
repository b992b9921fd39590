package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
)

// server is a tb-proxy or a tb-rls, and what its clients have seen.
type server struct {
	process
	account
	address, admin string
	redis          bool // the buckets are in Redis
	tls            bool
	// newClient returns the client of a worker.
	newClient func(worker int) client
	// hasLimit reports whether a limit of clients is in force.
	hasLimit func(ctx context.Context, l limit) bool
	reloaded string // the metric that is 1 if the last reload succeeded
}

// newServers returns the four servers, each with two of the addresses. The files of their limits,
// certificates and states are in the directory.
func newServers(
	c settings, addresses []string, redis string, a *authority, upstream string,
) (all []*server) {
	for _, command := range []string{"proxy", "rls"} {
		for _, store := range []string{"memory", "redis"} {
			s := &server{redis: store == "redis", tls: store == "memory"}
			s.name, s.log = command+"-"+store, filepath.Join(c.dir, command+"-"+store+".log")
			s.grants = make(map[bucket][]grant)
			s.address, s.admin = addresses[2*len(all)], addresses[2*len(all)+1]
			s.command = []string{
				filepath.Join(c.programs, "tb-"+command), "--listen", s.address, "--admin", s.admin,
			}
			flags := []string{"--tls-cert", a.cert, "--tls-key", a.file}
			if s.redis {
				flags = []string{"--redis", redis, "--redis-timeout", "1s"}
			}
			s.command = append(s.command, flags...)
			switch command {
			case "proxy":
				s.isProxy(c, a, upstream)
			case "rls":
				s.isService(c, a)
			}
			all = append(all, s)
		}
	}
	return all
}

func (s *server) isProxy(c settings, a *authority, upstream string) {
	s.command = append(s.command, "--policy", filepath.Join(c.dir, policyFile),
		"--upstream", upstream, "--trusted-proxies", "127.0.0.1")
	if s.redis {
		s.command = append(s.command, "--redis-failure", "refuse")
	} else {
		s.command = append(s.command, "--state", filepath.Join(c.dir, "state"), "--state-interval", "10s")
	}
	s.newClient = func(worker int) client {
		if !s.tls {
			return newHTTPClient(s.address, nil, false)
		}
		return newHTTPClient(s.address, a.roots, worker%2 == 0)
	}
	s.reloaded = "tb_policy_last_reload_successful"
	s.hasLimit = func(ctx context.Context, l limit) bool {
		m, err := s.scrape(ctx)
		return err == nil && m.sum("tb_limit_tokens_per_second", `rule="client"`) == l.rate
	}
}

func (s *server) isService(c settings, a *authority) {
	s.command = append(s.command, "--config", filepath.Join(c.dir, configFile))
	s.newClient = func(int) client {
		if !s.tls {
			return &grpcClient{address: s.address}
		}
		return &grpcClient{address: s.address, roots: a.roots}
	}
	s.reloaded = "tb_rls_config_last_reload_successful"
	s.hasLimit = func(ctx context.Context, l limit) bool {
		text, err := get(ctx, "http://"+s.admin+"/rlconfig")
		return err == nil && strings.Contains(text,
			fmt.Sprintf("soak.client: unit=SECOND requests_per_unit=%v,", l.rate))
	}
}

// The files of the limits.
const policyFile, configFile = "policy.json", "limits.yaml"

// begin starts the server and waits until it answers.
func (s *server) begin(ctx context.Context, front ...string) error {
	if err := s.start(front...); err != nil {
		return err
	}
	return await(ctx, s.name+" answers", func() bool {
		_, err := s.scrape(ctx)
		return err == nil
	})
}
