// Reverseproxy is a reverse proxy that limits each client by its address and, if it sends one, by
// its API key.
//
//	go run ./examples/reverseproxy -listen :8080 -to http://localhost:9000
package main

import (
	"flag"
	"log"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"time"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

const policy = `{
  "rules": [
    { "name": "per-address", "limit_keys": ["ip:address"],
      "algorithm_config": { "tokens_per_second": 5, "burst": 10 } },
    { "name": "per-key", "limit_keys": ["header:x-api-key"],
      "algorithm_config": { "tokens_per_second": 100, "burst": 200 } }
  ]
}`

func main() {
	listen := flag.String("listen", ":8080", "address to listen on")
	to := flag.String("to", "http://localhost:9000", "URL of the upstream")
	flag.Parse()

	target, err := url.Parse(*to)
	if err != nil {
		log.Fatal(err)
	}
	handler, err := newProxy(target)
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: *listen, Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}

func newProxy(target *url.URL) (http.Handler, error) {
	p, err := httplimit.ParsePolicy([]byte(policy))
	if err != nil {
		return nil, err
	}
	for _, w := range p.Warnings() {
		slog.Warn("policy", "warning", w)
	}
	limiter, err := httplimit.New(p,
		// The X-Forwarded-For of another proxy on this machine is believed.
		httplimit.WithClientAddress(httplimit.ClientAddress{
			Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
		}),
		httplimit.WithHooks(httplimit.Hooks{
			Refused: func(r *http.Request, e httplimit.Event) {
				slog.Info("refused", "rule", e.Rule, "cost", e.Cost, "wait", e.RetryAfter, "path", r.URL.Path)
			},
		}))
	if err != nil {
		return nil, err
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			if limiter.TrustsPeer(r.In) {
				r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
			}
			r.SetXForwarded()
		},
		ModifyResponse: func(r *http.Response) error {
			httplimit.DropFields(r.Header)
			return nil
		},
	}
	return limiter.Middleware(proxy), nil
}
