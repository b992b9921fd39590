package replay

import (
	"strings"

	"github.com/alecthomas/kong"

	"github.com/seed-181794aa/ratelimit/cmd/internal/algorithm"
)

// Vars has the help of the flags for kong.
var Vars = kong.Vars{
	"replay_file": "Access logs, plain or packed by gzip or bzip2, in any order; - is standard" +
		" input. At least one is needed without --sample.",
	"replay_suggest": "Suggest a limit that refuses at most this share of the clients that ask for" +
		" several paths, as in 0.1%, at --rate or one of 18 rates from 0.1 to 70 a second. Without a" +
		" limit, 1%.",
	"replay_export": "With --suggest, print the limits alone as a policy, or as a configuration of" +
		" nginx, and the report to standard error.",
	"policy": "Replay a policy, as tb-proxy would decide with it, instead of a limit. It" +
		" has its own keys and costs.",
	"replay_key": "Key of a bucket: ip, user, path, host, or a field such as" +
		" request.headers.X-Api-Key. Several, with commas between, make a composite key.",
	"replay_trusted": "Networks of the proxies in front of the server, separated by commas, whose" +
		" X-Forwarded-For is believed.",
	"replay_cost": "Tokens that a request takes: a number, bytes (the size of the response), or a" +
		" field such as the seconds or the tokens of a model that it took.",
	"replay_field": "Where a log that names its fields has time, ip (the peer), forwarded, user," +
		" host, method, uri, query, status, size or agent, instead of the usual fields.",
	"replay_format": "The log_format of nginx that wrote the log, such as '$$remote_addr" +
		" [$$time_local] \"$$request\"', instead of detection.",
	"replay_max_keys": "Bound on the keys of each limiter, and so on memory: 1 to 1073741824.",
	"replay_algorithm": "Compare algorithms under the limit, in one pass: some of " +
		strings.Join(algorithm.Names, ", ") + ".",
	"replay_html": "Also write a page with charts of the requests over time and, for a suggestion," +
		" of what each burst refuses, and a table of keys into FILE.",
}

// Help explains what the help of the flags does not.
func (*Command) Help() string {
	return `Feeds access logs through the limiter, with the time of each line as its clock, and
reports what the limit would have done. Several files are merged by time. Without a limit,
it suggests one.

Exit status:

    0  The input was replayed.
    1  A part of the input was not replayed, because of an error, the order of its lines or an
       interrupt, most lines of a log are malformed, or no request has a part of the key or the
       cost field. The report covers the rest. With --json and --export, also if the answer may
       be wrong or there is none.
    2  The flags have a mistake.`
}
