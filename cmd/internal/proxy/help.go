package proxy

import "github.com/alecthomas/kong"

// Vars has the help of the flags. kong inserts it where a tag names a variable.
var Vars = kong.Vars{
	"proxy_upstream": "The server to pass requests on to, such as http://localhost:3000. The default" +
		" is a built-in demo.",
	"proxy_host": "Send the request's own Host to the upstream instead of the upstream's.",
	"proxy_timeout": "How long the upstream may take to begin its answer, and before it to take the" +
		" next piece of a body; 0s for no limit. Bodies may take any time.",

	"proxy_policy": "The file with the limits; docs/policy.md has its format. The proxy reads it" +
		" again when it changes and on SIGHUP. 'off' limits nothing. The default is 5 requests a" +
		" second for each address, and 10 at once.",
	"proxy_trusted": "Networks of the proxies in front of this one, separated by commas." +
		" X-Forwarded fields are believed if they come from these networks, and dropped otherwise.",
	"proxy_address_header": "The one field in which trusted proxies append the address of their" +
		" client.",
	"proxy_ipv4":     "Bits of an IPv4 address that make a client, 1 to 32.",
	"proxy_ipv6":     "Bits of an IPv6 address that make a client, 1 to 128.",
	"proxy_max_keys": "Bound on the keys of each rule, and so on memory: 1 to 1073741824.",
	"proxy_overflow": "What happens to a new key while no bucket is full: forgive the smallest" +
		" debt, or refuse the key.",

	"proxy_redis": "The Redis server that has the buckets, so that several proxies share them:" +
		" host:port, redis://host:port or rediss://user@host:port. TB_REDIS_USER and" +
		" TB_REDIS_PASSWORD in the environment stand in for a user and a password in the URL.",
	"proxy_redis_timeout": "How long a request waits for a command to Redis, at least 1ms.",
	"proxy_redis_failure": "What happens to a request if Redis does not decide in time: allow it," +
		" or refuse it with 503.",

	"proxy_fields":       "Which responses have the RateLimit fields: all, or refused requests only.",
	"proxy_policy_field": "Send RateLimit-Policy, too: the limits of the rules that apply.",
	"proxy_x": "Send X-RateLimit-Limit, -Remaining and -Reset, too, for clients that read no" +
		" other fields.",
	"proxy_reason": "Field that has the reason of a refusal; none by default.",
	"proxy_secret": "The same text for all proxies of the same clients: the jitter of Retry-After" +
		" is derived from it.",

	"proxy_listen": "Address of the proxy.",
	"proxy_cert": "Certificate chain for TLS in PEM. The proxy reads it again when it changes. With" +
		" TLS clients may use HTTP/2.",
	"proxy_key": "Private key of the certificate in PEM.",
	"proxy_h2c": "Accept HTTP/2 without TLS, from clients that know beforehand (h2c).",
	"proxy_underscores": "Keep request fields with _ in their names. By default they are dropped," +
		" because many upstreams read X_Api_Key as X-Api-Key.",
	"proxy_header_timeout": "How long a client may take to send the header of a request; 0s for no" +
		" limit.",
	"proxy_body_timeout": "How long a client may take to send the next piece of a body; 0s for no" +
		" limit.",

	"proxy_admin": "Address of the live page and of /metrics, or 'off'. There is no password:" +
		" every client that reaches the address can read them and reset buckets.",
	"proxy_delay": "How long the proxy goes on when it is stopped, and closes each connection after" +
		" its next response. A client that reuses connections then loses no request.",
	"proxy_shutdown": "How long requests may take to end after that; 0s cuts them off at once.",
	"proxy_access": "Which requests to log: none (off), refused ones (up to 100 lines at once and" +
		" 20 a second) or all.",
	"proxy_format": "Format of the log on standard error: text or json.",
	"proxy_keys": "Show keys unchanged in the log and on the live page. By default all but" +
		" addresses are hashed.",
	"proxy_state": "The file in which the proxy keeps its buckets across restarts. It contains the" +
		" keys of clients. Without it all buckets are full after a start.",
	"proxy_state_interval": "How often the proxy saves the buckets, apart from its stop.",
}

// Help returns what the flags do not explain.
func (*Command) Help() string {
	return `Passes requests on to an upstream if a policy grants them. The response to other
requests is 429 with the seconds to wait. WebSockets and streams pass. Without flags,
a demo upstream and a default policy show how it works.

A policy with errors is never put in force: at the start the proxy exits, and later the
previous policy stays. A rule keeps its buckets, also if its limit changes.

SIGINT and SIGTERM stop the proxy after its requests have ended. A second signal stops
it at once.

Exit status:
  0  the proxy was stopped
  1  the proxy could not start or continue
  2  the flags have a mistake`
}
