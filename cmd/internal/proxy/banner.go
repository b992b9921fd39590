package proxy

import (
	"fmt"
	"io"
	"net/http"
)

func (c *Command) printBanner(w io.Writer, proxy, admin string) {
	behind := c.Upstream.String()
	if c.usesDemo() {
		behind = "a demo upstream"
	}
	limits := "The limits come from " + c.Policy + ", which is read again when it changes."
	switch c.Policy {
	case "":
		limits = "Each address gets 5 requests a second, and 10 at once."
	case off:
		limits = "Nothing is limited."
	}
	fmt.Fprintf(w, "Listening on %s, with %s behind it.\n%s\n\n  curl -i %[1]s/\n\n",
		proxy, behind, limits)
	if admin != "" {
		fmt.Fprintf(w, "Live page: http://%s/, metrics: http://%[1]s/metrics\n", admin)
	}
	if c.Policy == "" {
		fmt.Fprintf(w, "For your own server and limits, add --upstream http://localhost:3000"+
			" --policy FILE.\nThis is the policy in force:\n\n%s\n", demoPolicy)
	}
	fmt.Fprintln(w, "Ctrl-C stops the proxy.")
}

const demoPolicy = `{
  "name": "per-address",
  "limit_keys": ["ip:address"],
  "algorithm_config": {"tokens_per_second": 5, "burst": 10}
}
`

func demoUpstream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintf(w, "The demo upstream got %s %q.\n", r.Method, r.URL.Path)
}
