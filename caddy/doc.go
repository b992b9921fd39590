// Package tokenbucket is a Caddy module that limits requests by a policy of package httplimit. The
// module http.handlers.token_bucket is the handler, and token_bucket is its directive in a
// Caddyfile. The app token_bucket keeps the limiters of a configuration.
//
// A program with this module imports it for its effect, as cmd/caddy does:
//
//	import _ "github.com/seed-181794aa/ratelimit/caddy"
//
// docs/caddy.md describes the configuration.
package tokenbucket
