// Redis is a server whose instances share the limits of their clients. The buckets are in a Redis
// server. If that fails, the requests pass.
//
//	redis-server &
//	go run ./tb/redis/example -listen :8080 &
//	go run ./tb/redis/example -listen :8081 &
//	curl -i http://localhost:8080/ http://localhost:8081/
package main

import (
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/redis"
)

// rules grant each address 5 requests at once, and one more in two seconds.
var rules = httplimit.Rules(httplimit.Rule{
	Name:  "per-address",
	Keys:  []string{"ip:address"},
	Limit: tb.Limit{Capacity: 5, Tokens: 30, Per: time.Minute},
})

func main() {
	listen := flag.String("listen", ":8080", "address to listen on")
	address := flag.String("redis", "localhost:6379", "address of the Redis server")
	flag.Parse()

	option, err := redis.ParseAddress(*address)
	if err != nil {
		log.Fatal(err)
	}
	client, err := redis.NewClient(option)
	if client == nil {
		log.Fatal(err)
	}
	if err != nil {
		log.Print("Redis does not answer yet: ", err)
	}
	handler, err := newHandler(client, 50*time.Millisecond)
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: *listen, Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}

// newHandler returns the handler of an instance. The timeout bounds how long a request waits for
// Redis.
func newHandler(client rueidis.Client, timeout time.Duration) (http.Handler, error) {
	store, err := redis.NewStore(client, redis.WithPrefix("example:"), redis.WithTimeout(timeout),
		redis.WithLogger(slog.Default()))
	if err != nil {
		return nil, err
	}
	limiter, err := httplimit.New(rules, httplimit.WithStore(store), httplimit.WithContext())
	if err != nil {
		return nil, err
	}
	hello := func(w http.ResponseWriter, r *http.Request) {
		d, _ := httplimit.FromContext(r.Context())
		fmt.Fprintf(w, "hello: %d of %d left\n", d.Remaining, d.Limit.Capacity)
	}
	return limiter.Middleware(http.HandlerFunc(hello)), nil
}
