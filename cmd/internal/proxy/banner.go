package proxy

import (
	"fmt"
	"io"
)

// printBanner prints the URL of the proxy, the address of the live page, which may be "", and
// commands to try.
func (c *Command) printBanner(w io.Writer, proxy, admin string) {
	behind := c.Upstream.String()
	if c.usesDemo() {
		behind = "a demo upstream"
	}
	page := ""
	if admin != "" {
		page = fmt.Sprintf(" Watch it at http://%s/", admin)
	}
	fmt.Fprintf(w, "Listening on %s, with %s behind it.%s\n", proxy, behind, page)
	switch c.Policy {
	case "":
		fmt.Fprintln(w, "Each address gets 5 requests a second, and 10 at once.")
	case off:
		fmt.Fprintln(w, "Nothing is limited.")
	default:
		fmt.Fprintf(w, "The limits come from %s, which is read again when it changes.\n", c.Policy)
	}
	request := "one request"
	if c.Policy == "" && c.Fields != "refused" {
		request += "; the header shows what is left of the limit"
	}
	fmt.Fprintf(w, `
Try it in another terminal:

  curl -i %s/     # %s
`, proxy, request)
	if c.Policy == "" {
		fmt.Fprintf(w, `  for i in $(seq 15); do   # a burst: about 10 pass, the rest get 429
    curl -s -o /dev/null -w '%%{http_code}\n' %s/
  done
`, proxy)
	}
	if admin != "" {
		fmt.Fprintf(w, "  curl http://%s/metrics  # for Prometheus\n", admin)
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
