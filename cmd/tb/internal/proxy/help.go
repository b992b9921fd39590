package proxy

import "github.com/alecthomas/kong"

// Vars has the help of the flags. kong inserts it where a tag names a variable.
var Vars = kong.Vars{
	"proxy_upstream": "The server to pass requests on to, such as http://localhost:3000. The default" +
		" is a built-in demo.",
	"proxy_host": "Send the request's own Host to the upstream instead of the upstream's.",
	"proxy_timeout": "How long the upstream may take to begin its answer; 0s for no limit. Bodies" +
		" may take any time.",

	"proxy_policy": "The file with the limits; docs/policy.md has its format. The proxy reads it" +
		" again when it changes and on SIGHUP. 'off' limits nothing. The default is 5 requests a" +
		" second for each address, and 10 at once.",
	"proxy_trusted": "Networks of the proxies in front of this one, separated by commas." +
		" X-Forwarded fields are believed if they come from these networks, and dropped otherwise.",
	"proxy_max_keys": "Bound on the keys of each rule, and so on memory: 1 to 1073741824.",
	"proxy_overflow": "What happens to a new key while no bucket is full: forgive the smallest" +
		" debt, or refuse the key.",
	"proxy_fields": "Which responses have the RateLimit fields: all, or refused requests only.",

	"proxy_listen": "Address of the proxy.",
	"proxy_admin": "Address of the live page and of /metrics, or 'off'. There is no password:" +
		" every client that reaches the address can read them.",
	"proxy_shutdown": "How long requests may take to end when the proxy stops; 0s cuts them off at" +
		" once.",

	"proxy_access": "Which requests to log: none (off), refused ones (up to 100 lines at once and" +
		" 20 a second) or all.",
	"proxy_format": "Format of the log on standard error: text or json.",
	"proxy_keys": "Show keys unchanged in the log and on the live page. By default all but" +
		" addresses are hashed.",
}

// Help returns what the flags do not explain.
func (*Command) Help() string {
	return `Passes requests on to an upstream if a policy grants them. The response to other
requests is 429 with the seconds to wait. WebSockets and streams pass. Without flags,
a demo upstream and a default policy show how it works.

A policy with errors is never put in force: at the start the proxy exits, and later the
previous policy stays. A rule that did not change keeps its buckets.

SIGINT and SIGTERM stop the proxy after its requests have ended. A second signal stops
it at once.

Exit status:
  0  the proxy was stopped
  1  the proxy could not start or continue
  2  the flags have a mistake`
}
