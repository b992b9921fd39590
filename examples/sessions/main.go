// Sessions limits the sessions of a web site, which stands behind a proxy on the same machine. A
// session is the value of a cookie. A client may invent cookies, so a second rule limits addresses.
// The proxy names the address of its client in Forwarded (RFC 7239). The program follows the file
// of the policy: a new limit is in force at once, and a mistake in the file changes nothing.
//
//	go run ./examples/sessions -policy examples/sessions/policy.json
//	curl -i -b sid=a -H 'Forwarded: for=192.0.2.1' http://127.0.0.1:8080/
package main

import (
	"context"
	"flag"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address to listen on")
	policy := flag.String("policy", "policy.json", "file of the policy")
	flag.Parse()

	handler, err := newSite(context.Background(), *policy)
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: *listen, Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}

// newSite returns the site, whose limiter follows the policy in a file until ctx is done.
func newSite(ctx context.Context, policy string) (http.Handler, error) {
	file := httplimit.PolicyFile{Name: policy, Reloaded: func(r httplimit.Reload) {
		if r.Err != nil {
			slog.Error("policy rejected", "cause", r.Cause, "error", r.Err)
			return
		}
		slog.Info("policy in force", "cause", r.Cause, "warnings", r.Policy.Warnings())
	}}
	proxies := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	limiter, err := httplimit.FromFile(ctx, file, httplimit.WithClientAddress(
		httplimit.ClientAddress{Trusted: proxies, Header: "Forwarded"}))
	if err != nil {
		return nil, err
	}
	return limiter.Middleware(http.HandlerFunc(hello)), nil
}

func hello(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello\n") }
