package proxy

import "github.com/alecthomas/kong"

// Vars has the help of the flags, for kong to put in their place.
var Vars = kong.Vars{
	"proxy_upstream": "Where requests go: http://localhost:3000. Without it there is a demo upstream.",
	"proxy_host":     "Pass the Host of a request on instead of the upstream's own.",
	"proxy_timeout": "How long the upstream may take to begin its answer, 0s for ever. Bodies may" +
		" take any time.",

	"proxy_policy": "The limits, as docs/policy.md says; read again when the file changes and on" +
		" SIGHUP. 'off' limits nothing. The default is 5 requests a second for each address," +
		" and 10 at once.",
	"proxy_trusted": "Networks of the proxies in front of this one, separated by commas, whose" +
		" X-Forwarded fields are believed. Anybody else's are dropped.",
	"proxy_max_keys": "Bound on the keys of each rule, and so on memory: 1 to 1073741824.",
	"proxy_overflow": "What happens to a new key while no bucket is full: forgive the smallest" +
		" debt, or refuse the key.",
	"proxy_fields": "Which responses say what is left of the limits: all, or those to requests" +
		" that are refused.",

	"proxy_listen":   "Address of the proxy.",
	"proxy_admin":    "Address of the live page and of /metrics, for all who reach it; or 'off'.",
	"proxy_shutdown": "How long requests may take to end when the proxy is stopped.",

	"proxy_access": "Log no requests, those that are refused (at most 20 lines a second), or all.",
	"proxy_format": "Format of the log on standard error: text or json.",
	"proxy_keys": "Show keys as they are, in the log and on the live page. Without it all but" +
		" addresses are hashed.",
}

// Help explains what the flags do not.
func (*Command) Help() string {
	return `Passes requests on to an upstream, as long as a policy grants them, and answers the
others with 429 and how long to wait. WebSocket and streams pass. With no flags there
is a demo upstream and a default policy, to try it out.

A policy that has errors is never put in force: at the start it is an error, and later
the policy before stays. A rule that did not change keeps its buckets.

SIGINT and SIGTERM stop the proxy once its requests have ended; a second one at once.

Exit status: 0 if it was stopped; 1 if it could not start or go on; 2 for a mistake in
the flags.`
}
