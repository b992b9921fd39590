package redis_test

import (
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"time"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/redis"
)

// The instances of a server share the limits of their clients: 5 requests at once, and one more in
// two seconds. If Redis fails, the requests pass.
func Example() {
	option, err := redis.ParseAddress("localhost:6379")
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
	rules := httplimit.Rules(httplimit.Rule{
		Name:  "per-address",
		Keys:  []string{"ip:address"},
		Limit: tb.Limit{Capacity: 5, Tokens: 30, Per: time.Minute},
	})
	store, err := redis.NewStore(client,
		redis.WithPrefix("example:"), redis.WithLogger(slog.Default()))
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := httplimit.New(rules, httplimit.WithStore(store), httplimit.WithContext())
	if err != nil {
		log.Fatal(err)
	}
	hello := func(w http.ResponseWriter, r *http.Request) {
		d, _ := httplimit.FromContext(r.Context())
		fmt.Fprintf(w, "hello: %d of %d left\n", d.Remaining, d.Limit.Capacity)
	}
	server := &http.Server{
		Addr: ":8080", Handler: limiter.Middleware(http.HandlerFunc(hello)),
		ReadHeaderTimeout: 5 * time.Second,
	}
	log.Fatal(server.ListenAndServe())
}
