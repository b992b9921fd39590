package proxy

import (
	"fmt"
	"net/http"
)

// demoPolicy is the policy if --policy is not set, in the form of a policy file.
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
