package replay

import (
	"fmt"

	"github.com/alecthomas/kong"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/samplelog"
)

// Vars has the help of the flags, for kong to put in their place.
var Vars = kong.Vars{
	"replay_file": "Access logs, plain or gzipped; - is standard input. At least one is needed" +
		" unless --sample makes one up.",

	"replay_rate":  "Refill rate: 5 (a second), 2.5/s, 300/m, 1/24h.",
	"replay_burst": "Capacity of a bucket, in tokens.",
	"replay_sweep": "Compare all pairs of rates and bursts, as in 'rate=1,2,300/m burst=10,20'." +
		" What is not listed is taken from --rate or --burst.",

	"replay_key": "What makes a client: ip, user, path, host, or a JSON field such as" +
		" request.headers.X-Api-Key. Several, with commas between, make a composite key.",
	"replay_prefix": "Bits of an IPv6 address that make a client, 1 to 128.",
	"replay_cost": "Tokens that a request takes: a number, bytes, bytes/KiB (kB, MiB, …) or a" +
		" JSON field.",
	"replay_field": "Where a JSON log keeps time, ip, user, host, uri or size, if that is not" +
		" found by itself.",

	"replay_max_keys": "Bound on the keys of each limiter, and so on memory.",
	"replay_overflow": "What happens to a new key while no bucket is full: forgive the smallest" +
		" debt, or refuse the key.",
	"replay_impl": "Implementation of the limiter: cas or mutex.",

	"replay_json": "Print the report as JSON.",
	"replay_svg":  "Also draw the decisions over time into FILE.",

	"replay_sample": "Replay a generated log instead of files.",
	"replay_sample_lines": fmt.Sprintf("Length of the generated log, %s to %s.",
		count(samplelog.MinLines), count(samplelog.MaxLines)),
}

// Help explains what the flags do not.
func (*Command) Help() string {
	return `Feeds access logs through the limiter, with the time of each line as its clock,
and says what the limit would have done. Common and Combined Log Format and JSON
lines (Caddy, nginx) are told apart by themselves, file by file. A virtual host may
precede the client, and X-Forwarded-For stand in its place: its first address counts.

No request is free: a response whose size is 0 or was not logged costs as much as
one byte, and one without a positive number in its cost field costs one token.

Exit status: 0 if all was replayed; 1 if not, for an interrupt or an input that could
not be read or had no valid line, and then the report covers the rest, and if no request
had a part of the key or the cost field; 2 for a mistake in the flags.`
}
