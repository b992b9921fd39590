// Llm is a reverse proxy that limits the tokens of a language model that each API key uses in a
// minute. The proxy charges max_tokens of the request as an estimate, and settles it with the usage
// at the end of the answer.
//
//	go run ./examples/llm -listen :8080 -to http://localhost:9000
package main

import (
	"errors"
	"flag"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/httplimit/usage"
)

// The policy grants each API key 60,000 tokens a minute and 20,000 at once. An answer usually takes
// about 800. The second rule bounds how many API keys a client can invent, and how many answers it
// can begin.
const policy = `{
  "rules": [
    { "name": "tokens", "limit_keys": ["header:authorization"], "on_missing": "reject",
      "algorithm_config": { "tokens_per_second": 1000, "burst": 20000,
        "cost_source": "response:usage", "default_cost": 800, "max_cost": 8000 } },
    { "name": "requests", "limit_keys": ["ip:address"],
      "algorithm_config": { "tokens_per_second": 10, "burst": 100 } }
  ]
}`

func main() {
	listen := flag.String("listen", ":8080", "address to listen on")
	to := flag.String("to", "http://localhost:9000", "URL of the language model")
	flag.Parse()

	model, err := url.Parse(*to)
	if err != nil {
		log.Fatal(err)
	}
	handler, _, err := newProxy(model, http.DefaultTransport)
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: *listen, Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}

func newProxy(model *url.URL, transport http.RoundTripper) (
	http.Handler, *httplimit.Limiter, error,
) {
	tokens := httplimit.WithUsage(httplimit.Usage{Estimate: usage.Estimate, Read: usage.Read})
	p, err := httplimit.ParsePolicyFor([]byte(policy), tokens)
	if err != nil {
		return nil, nil, err
	}
	for _, w := range p.Warnings() {
		slog.Warn("policy", "warning", w)
	}
	limiter, err := httplimit.New(p, tokens)
	if err != nil {
		return nil, nil, err
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(model)
			r.Out.Header.Del("Accept-Encoding") // the transport compresses: no other usage is read
		},
		Transport:    transport,
		ErrorHandler: unanswered,
	}
	return limiter.Middleware(proxy), limiter, nil
}

// unanswered answers a request that the model did not answer. The request is free if there was no
// connection to the model. Otherwise the model may have worked on it, and the estimate stands.
func unanswered(w http.ResponseWriter, _ *http.Request, err error) {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		http.Error(w, `{"error": "the model is down", "usage": {"total_tokens": 0}}`,
			http.StatusBadGateway)
		return
	}
	http.Error(w, http.StatusText(http.StatusBadGateway), http.StatusBadGateway)
}
