package outbound_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/seed-181794aa/ratelimit"
	"github.com/seed-181794aa/ratelimit/httplimit/usage"
	"github.com/seed-181794aa/ratelimit/outbound"
)

func Example() {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()

	client := &http.Client{Transport: outbound.New(http.DefaultTransport, outbound.PerHost(2, 0.1))}
	client.Timeout = time.Second
	for range 3 {
		response, err := client.Get(server.URL)
		var wait *ratelimit.WaitError
		if errors.As(err, &wait) {
			fmt.Println("too late:", wait.Wait.Round(time.Second))
			return
		}
		fmt.Println(response.StatusCode)
	}
	// Output:
	// 404
	// 404
	// too late: 10s
}

// A client of a language model whose requests and tokens are limited for each API key. The tokens
// of a request are an estimate until its answer has ended.
func ExampleRules() {
	key := func(r *http.Request) string { return r.Header.Get("Authorization") }
	client := &http.Client{Transport: outbound.New(nil, outbound.Rules(
		outbound.Rule{
			Name: "requests", Key: key,
			Limit: ratelimit.Limit{Capacity: 50, Tokens: 500, Per: time.Minute},
		},
		outbound.Rule{
			Name: "tokens", Key: key, Unit: outbound.Tokens,
			Limit: ratelimit.Limit{Capacity: 20_000, Tokens: 150_000, Per: time.Minute},
			Cost:  usage.Estimate, Usage: usage.Read,
		},
	))}
	fmt.Println(len(client.Transport.(*outbound.Transport).Stats().Rules), "rules")
	// Output: 2 rules
}
