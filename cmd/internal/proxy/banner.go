package proxy

import (
	"fmt"
	"io"
	"net/http"

	"github.com/seed-181794aa/ratelimit/cmd/internal/daemon"
)

func (r *runner) printBanner(w io.Writer) {
	behind := r.Upstream.String()
	if r.usesDemo() {
		behind = "a demo upstream"
	}
	limits := "The limits come from " + r.Policy + ", which is read again when it changes."
	switch r.Policy {
	case "":
		limits = "Each address gets 5 requests a second, and 10 at once."
	case off:
		limits = "Nothing is limited."
	}
	fmt.Fprintf(w, "Listening on %s, with %s behind it.\n%s\n\n  curl -i %[1]s/\n\n",
		r.url(), behind, limits)
	if r.adminListener != nil {
		fmt.Fprintf(w, "Live page: http://%s/, metrics: http://%[1]s/metrics\n",
			daemon.Address(r.adminListener))
	}
	if r.Policy == "" {
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
	fmt.Fprintf(w, "The demo upstream got %s %q.\n", r.Method, r.URL.Path)
}
