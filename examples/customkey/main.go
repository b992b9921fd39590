// Customkey gives each tenant of a server a bucket of its own. The application says which tenant
// a request belongs to: here it is the first label of the host.
//
//	go run ./examples/customkey
//	curl -i -H 'Host: blue.example.com' http://localhost:8080/
package main

import (
	"fmt"
	"log"
	"net/http"
	"strings"
	"time"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
)

func main() {
	handler, err := newHandler()
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: ":8080", Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}

func newHandler() (http.Handler, error) {
	limiter, err := httplimit.New(
		httplimit.Rules(httplimit.Rule{
			Name:      "per-tenant",
			Keys:      []string{"tenant"},
			OnMissing: httplimit.Shared,
			Limit:     tb.Limit{Capacity: 5, Tokens: 30, Per: time.Minute},
		}),
		httplimit.WithExtractor("tenant", tenant),
		httplimit.WithContext(),
		httplimit.WithLimiterOptions(tb.WithMaxKeys(10_000)))
	if err != nil {
		return nil, err
	}
	hello := func(w http.ResponseWriter, r *http.Request) {
		d, _ := httplimit.FromContext(r.Context())
		fmt.Fprintf(w, "hello, %q: %d of %d left\n", tenant(r), d.Remaining, d.Limit.Capacity)
	}
	return limiter.Middleware(http.HandlerFunc(hello)), nil
}

// tenant returns the first label of a host such as blue.example.com, and "" for other hosts.
func tenant(r *http.Request) string {
	host, _, _ := strings.Cut(r.Host, ":")
	name, domain, _ := strings.Cut(strings.ToLower(host), ".")
	if domain != "example.com" {
		return ""
	}
	return name
}
