package tokenbucket

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// peer is a server that docs/caddy.md compares this module with. It listens on a socket.
type peer struct {
	*server
	*exec.Cmd
	dir string
}

// startPeer starts a program with a configuration, in which DIR is a new folder. Its requests go to
// the socket DIR/http. Without the program the test is skipped.
func startPeer(t *testing.T, program, config string, args ...string) peer {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skip(program + " is not installed")
	}
	p := peer{dir: t.TempDir()}
	p.write(t, "config", config)
	p.write(t, "ok", "ok")
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "DIR", p.dir)
	}
	p.Cmd = exec.CommandContext(t.Context(), program, args...)
	p.Stdout, p.Stderr = t.Output(), t.Output()
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = p.Wait()
		close(ended)
	}()
	t.Cleanup(func() { <-ended }) // the context has ended, and with it the program
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		for {
			c, err := new(net.Dialer).DialContext(ctx, "unix", filepath.Join(p.dir, "http"))
			if err == nil {
				return c, nil
			}
			select {
			case <-ended:
				return nil, err
			default:
			}
		}
	}
	p.server = &server{t: t, url: "http://peer.example", client: &http.Client{
		Transport: &http.Transport{DialContext: dial},
	}}
	return p
}

func (p *peer) write(t *testing.T, name, text string) {
	t.Helper()
	text = strings.ReplaceAll(text, "DIR", p.dir)
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

const nginx = `
daemon off;
master_process off;
pid DIR/pid;
error_log DIR/errors error;
events {}
http {
	access_log off;
	client_body_temp_path DIR/body;
	proxy_temp_path DIR/proxy;
	fastcgi_temp_path DIR/fastcgi;
	uwsgi_temp_path DIR/uwsgi;
	scgi_temp_path DIR/scgi;
	limit_req_zone all zone=first:32k rate=1r/m;
	limit_req_zone all zone=second:32k rate=1r/m;
	limit_req_zone $arg_key zone=keys:32k rate=1r/m;
	root DIR;
	server {
		listen unix:DIR/http;
		location = /both {
			limit_req zone=first burst=1 nodelay;
			limit_req zone=second;
			try_files /ok =404;
		}
		location = /first {
			limit_req zone=first burst=1 nodelay;
			try_files /ok =404;
		}
		location = /dry {
			limit_req zone=second;
			limit_req_dry_run on;
			try_files /ok =404;
		}
		location = /key {
			limit_req zone=keys;
			try_files /ok =404;
		}
	}
}
`

// The cells of the table about limit_req.
func TestNginx(t *testing.T) {
	p := startPeer(t, "nginx", nginx, "-p", "DIR", "-e", "DIR/errors", "-c", "DIR/config")
	p.want(200, "/both")
	p.want(503, "/both").fields(t, "Retry-After:", "RateLimit:", "X-RateLimit-Limit:")
	p.want(200, "/first") // the first limit is not charged for the refusal
	p.want(503, "/first")
	p.want(200, "/dry")
	log := readFile(t, filepath.Join(p.dir, "errors"))
	if n := strings.Count(log, " limiting requests, excess: "); n != 2 {
		t.Errorf("%d lines of refusals, want 2\n%s", n, log)
	}
	p.want(200, "/key?key=old")
	p.want(200, "/key?key=used")
	for i := range 1000 { // more than the zone has room for
		p.want(200, fmt.Sprint("/key?key=", i))
		if i%20 == 0 {
			p.want(503, "/key?key=used")
		}
	}
	p.want(200, "/key?key=old")
}

// tick sends requests until the clock of HAProxy, which counts milliseconds, has gone on.
func (p *peer) tick(t *testing.T) {
	t.Helper()
	for start := time.Now(); time.Since(start) < 3*time.Millisecond; {
		p.want(200)
	}
}

const haproxy = `
defaults
	mode http
	timeout client 1m
	timeout connect 1m
	timeout server 1m
backend counters
	stick-table type string len 32 size 3 expire 1h store http_req_rate(1h)
backend few
	stick-table type string len 32 size 3 expire 1h nopurge store http_req_rate(1h)
frontend http
	bind unix@DIR/http mode 666
	http-request track-sc0 url_param(key) table counters if { path /counters }
	http-request track-sc0 url_param(key) table few if { path /few }
	http-request deny if { sc_http_req_rate(0) gt 2 }
	http-request return status 200
	http-after-response set-header X-Rate %[sc_http_req_rate(0)]
`

// The cells of the table about stick tables.
func TestHAProxy(t *testing.T) {
	p := startPeer(t, "haproxy", haproxy, "-db", "-f", "DIR/config")
	for range 2 {
		p.want(200, "/counters?key=a")
	}
	p.want(403, "/counters?key=a").fields(t, "Retry-After:", "RateLimit:", "X-Rate: 3")
	p.want(403, "/counters?key=a").fields(t, "X-Rate: 4") // refused requests count
	p.tick(t)
	p.want(200, "/counters?key=b")
	p.tick(t)
	p.want(200, "/counters?key=c")
	p.tick(t)
	p.want(403, "/counters?key=a").fields(t, "X-Rate: 5")
	p.want(200, "/counters?key=d") // evicts b, which is the least recently used key
	p.want(403, "/counters?key=a").fields(t, "X-Rate: 6")
	p.want(200, "/counters?key=b").fields(t, "X-Rate: 1")
	for _, key := range []string{"a", "b", "c"} {
		p.want(200, "/few?key="+key).fields(t, "X-Rate: 1")
	}
	for range 5 { // more than the limit of 2, because they are not counted
		p.want(200, "/few?key=d")
	}
}
