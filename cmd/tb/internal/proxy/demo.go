package proxy

import (
	"fmt"
	"io"
	"net/http"
)

// demoPolicy is the policy if --policy is not set, in the form of a policy file.
const demoPolicy = `{
  "name": "per-address",
  "limit_keys": ["ip:address"],
  "algorithm_config": {"tokens_per_second": 5, "burst": 10}
}
`

// demoUpstream answers each request with one line.
func demoUpstream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintf(w, "The demo upstream got %s %q.\n", r.Method, r.URL.Path)
}

// printBanner prints the addresses that serve and commands to try. admin may be "".
func (c *Command) printBanner(w io.Writer, proxy, admin string) {
	behind := c.Upstream.String()
	if c.usesDemo() {
		behind = "a demo upstream"
	}
	fmt.Fprintf(w, "Listening on http://%s, with %s behind it.\n", proxy, behind)
	switch c.Policy {
	case "":
		fmt.Fprintln(w, "Each address gets 5 requests a second, and 10 at once.")
	case policyOff:
		fmt.Fprintln(w, "Nothing is limited.")
	default:
		fmt.Fprintf(w, "The limits come from %s, which is read again when it changes.\n", c.Policy)
	}
	fmt.Fprintf(w, `
Try it in another terminal:

  curl -i http://%[1]s/     # one request; the header shows what is left of the limit
`, proxy)
	if c.Policy == "" {
		fmt.Fprintf(w, `  for i in $(seq 15); do   # a burst: about 10 pass, the rest get 429
    curl -s -o /dev/null -w '%%{http_code}\n' http://%s/
  done
`, proxy)
	}
	if admin != "" {
		fmt.Fprintf(w, `  curl http://%[1]s/metrics  # for Prometheus

Watch the buckets drain and fill in a browser: http://%[1]s/
`, admin)
	}
	if c.usesDemo() {
		fmt.Fprintln(w, `
To limit your own server, run this again with its URL and a policy:

  --upstream http://localhost:3000 --policy policy.json`)
	}
	if c.Policy == "" {
		fmt.Fprintf(w, "\nThis is the policy in force. Start yours from it:\n\n%s", demoPolicy)
	}
	fmt.Fprintln(w, "\nCtrl-C stops the proxy.")
}
