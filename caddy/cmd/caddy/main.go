// Command caddy is Caddy with its standard modules and the module token_bucket.
package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/seed-181794aa/ratelimit/caddy"
)

func main() { caddycmd.Main() }
