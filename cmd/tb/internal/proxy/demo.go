package proxy

import (
	"fmt"
	"io"
	"net/http"
)

// demoPolicy is the policy of who has none yet. It is written as it would be in a file.
const demoPolicy = `{
  "name": "per-address",
  "limit_keys": ["ip:address"],
  "algorithm_config": {"tokens_per_second": 5, "burst": 10}
}
`

// demoUpstream answers everything.
func demoUpstream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintf(w, "The demo upstream got %s %q.\n", r.Method, r.URL.Path)
}

// next tells what to type next.
func (c *Command) next(w io.Writer, proxy, admin string) {
	behind := c.Upstream.String()
	if c.demo() {
		behind = "a demo upstream"
	}
	fmt.Fprintf(w, "Listening on http://%s, with %s behind it.\n", proxy, behind)
	switch c.Policy {
	case "":
		fmt.Fprintln(w, "Each address gets 5 requests a second, and 10 at once.")
	case policyOff:
		fmt.Fprintln(w, "Nothing is limited.")
	default:
		fmt.Fprintf(w, "Limits are those of %s, which is read again when it changes.\n", c.Policy)
	}
	fmt.Fprintf(w, `
Try it in another terminal:

  curl -i http://%[1]s/     # one request, and what is left of the limit
`, proxy)
	if c.Policy == "" {
		fmt.Fprintf(w, `  for i in $(seq 15); do   # a burst: about 10 pass, the others get 429
    curl -s -o /dev/null -w '%%{http_code}\n' http://%s/
  done
`, proxy)
	}
	if admin != "" {
		fmt.Fprintf(w, `  curl http://%[1]s/metrics  # for Prometheus

Watch the buckets fill and drain in a browser: http://%[1]s/
`, admin)
	}
	if c.demo() {
		fmt.Fprintln(w, `
To limit a server of yours, run this again and say where it is and what it may get:

  --upstream http://localhost:3000 --policy policy.json`)
	}
	if c.Policy == "" {
		fmt.Fprintf(w, "\nThis is the policy here, to start yours from:\n\n%s", demoPolicy)
	}
	fmt.Fprintln(w, "\nCtrl-C stops it.")
}
