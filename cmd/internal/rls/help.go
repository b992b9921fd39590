package rls

import "github.com/alecthomas/kong"

// Vars has the help of the flags. kong inserts it where a tag names a variable.
var Vars = kong.Vars{
	"rls_config": "The directory with the limits, in files *.yaml or *.yml of envoyproxy/ratelimit," +
		" or one such file; docs/rls.md has the format. The service reads it again when it changes" +
		" and on SIGHUP.",
	"rls_check": "Read the configuration, print its errors and warnings, and end, with 1 if it has" +
		" errors.",
	"rls_xds": "Servers of xDS that have the limits, in place of files: host:port, separated by" +
		" commas or each in its own flag. The next one is asked if one does not answer. Until the first" +
		" limits come, requests have an error and the health service reports NOT_SERVING.",
	"rls_xds_node": "The name of this service for the servers of xDS.",
	"rls_xds_tls":  "Connect to the servers of xDS by TLS.",
	"rls_xds_ca":   "Certificates in PEM of authorities for that, in place of the system's.",
	"rls_xds_cert": "Certificate of this service for that, in PEM.",
	"rls_xds_key":  "Private key of that certificate in PEM.",
	"rls_merge":    "Accept several files with one domain.",
	"rls_shadow":   "Refuse nothing, and send no fields. The metrics have what would be refused.",
	"rls_quota":    "Refuse a request only if all of its rules do, as if each had quota_mode.",
	"rls_hits": "What several hits are, unless debt in a file says it: the report of a cost that is" +
		" taken also from a request that is refused, or the weight of a request, which is not.",
	"rls_max_keys": "Bound on the keys of each rule, and so on memory: 1 to 1073741824.",
	"rls_overflow": "What happens to a new key while no bucket is full: forgive the smallest" +
		" debt, or refuse the key.",

	"rls_redis": "The Redis server that has the buckets, so that several services share them:" +
		" host:port, redis://host:port or rediss://user@host:port. TB_REDIS_USER and" +
		" TB_REDIS_PASSWORD in the environment stand in for a user and a password in the URL.",
	"rls_redis_timeout": "How long a request waits for Redis, at least 1ms.",
	"rls_redis_failure": "What happens to a request if Redis does not decide in time: an error, for" +
		" which Envoy's failure_mode_deny decides, or allow it, or refuse it.",

	"rls_fields": "Which answers have RateLimit fields for the client: off, refused or all.",
	"rls_names":  "RateLimit-Limit,RateLimit-Remaining,RateLimit-Reset",
	"rls_field_names": "Names of the three fields that have a number each: the limit, what is left," +
		" and the reset.",
	"rls_policy_field": "Send RateLimit-Policy, too: the limits of the rules that apply.",
	"rls_x":            "Send X-RateLimit-Limit, -Remaining and -Reset, too.",
	"rls_metadata":     "Send dynamic metadata: the descriptors, and the metadata of granting rules.",

	"rls_listen": "Address of the service: host:port, or unix:// and the path of a socket.",
	"rls_cert": "Certificate chain for TLS in PEM. The service reads it again when it changes and on" +
		" SIGHUP, and so the other files of TLS.",
	"rls_key":       "Private key of the certificate in PEM.",
	"rls_client_ca": "Certificates in PEM of which one must have signed the client's certificate.",
	"rls_streams": "How many requests a connection may have under way: Envoy's max_requests or" +
		" more.",
	"rls_keepalive": "How long a connection may be silent before the service pings the client; 0s" +
		" for 2h.",
	"rls_keepalive_timeout": "How long a client may take to answer a ping; 0s for 20s.",
	"rls_keepalive_min":     "How often a client may ping; 0s for 5m. More often ends the connection.",
	"rls_idle": "How long a connection may have no request before it is closed; 0s for any" +
		" time.",
	"rls_age": "How long a connection may be open, ±10 %, before the client must open another; 0s" +
		" for any time.",
	"rls_grace": "How long requests may take to end on a connection that is too old; 0s for any time.",

	"rls_admin": "Address of the live page and of /metrics, or 'off'. There is no password:" +
		" every client that reaches the address can read them and reset buckets.",
	"rls_upstream": "Serve the counts and durations also under the names of envoyproxy/ratelimit," +
		" for its dashboards.",
	"rls_delay": "How long the service goes on when it is stopped, and reports NOT_SERVING to health" +
		" checks: a second more than their interval, so that clients use another service by then.",
	"rls_shutdown": "How long requests may take to end after that; 0s cuts them off at once.",
	"rls_format":   "Format of the log on standard error: text or json.",
	"rls_keys": "Show keys unchanged on the live page. By default all values but addresses are" +
		" hashed.",
}

// Help returns what the flags do not explain.
func (*Command) Help() string {
	return `Answers the rate limit requests of Envoy, and so of Istio, Contour and Envoy Gateway, by
gRPC: envoy.service.ratelimit.v3.RateLimitService. The configuration is that of
envoyproxy/ratelimit. Each rule has token buckets, in memory or in Redis.

Exit status:
  0  the service was stopped, or --check found no error
  1  the service could not start or continue, or --check found an error
  2  the flags have a mistake`
}
