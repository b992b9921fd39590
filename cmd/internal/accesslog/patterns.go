package accesslog

import (
	"bytes"
	"slices"
)

// patterns are the formats of programs, in the notation of nginx, each before the ones that it
// could be taken for. A $word has no space, $number is a number, and $_ is any text.
var patterns = []struct {
	format Format
	text   string
	is     look
}{
	// HAProxy, option httplog and httpslog: docs.haproxy.org/dev/configuration.html#8.2.3. It writes
	// #22 for a quote. syslog may cut the line off in the request.
	{"haproxy",
		`$peer_port [$time_local] $word $word/$word $number/$number/$number/$number/$number` +
			` $status $bytes_sent $text "$request`, exact},
	// docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-access-logs.html
	{"alb",
		`$type $time_iso8601 $word $peer_port $word $number $number $number $status $word $number` +
			` $bytes_sent "$request" "$http_user_agent"`, exact},
	// docs.aws.amazon.com/AmazonS3/latest/userguide/LogFormat.html. A request for a batch has a line,
	// and also each of its keys. S3 logs what it does by rules of lifecycles, too.
	{"s3",
		`$owner $word [$time_local] $remote_addr $remote_user $word $operation $word "$request"` +
			` $status $word $bytes_sent`, among},
	// www.envoyproxy.io/docs/envoy/latest/configuration/observability/access_log/usage. It has no
	// peer, and has appended it to X-Forwarded-For if it uses the remote address. It escapes nothing:
	// a client that sends a quote and a space may make its line malformed.
	{"envoy", `[$time_iso8601] "$request" $status $word $number $bytes_sent $number $word` +
		` "$http_x_forwarded_for" "$http_user_agent" "$word" "$http_host" "$word"`, whole},
	// istio.io/latest/docs/tasks/observability/logs/access-log
	{"istio",
		`[$time_iso8601] "$request" $status $word $text "$text" $number $bytes_sent $number $word` +
			` "$http_x_forwarded_for" "$http_user_agent" "$word" "$http_host" "$word" $word $word $word` +
			` $remote_addr $word $word`, exact},
	// nginx with the host in quotes behind the time
	{Combined,
		`$peer - $remote_user [$time_local] "$http_host" "$request" $status` +
			` $body_bytes_sent "$http_referer" "$http_user_agent"`, exact},
	// docs.aws.amazon.com/elasticloadbalancing/latest/classic/access-log-collection.html
	{"elb", `$time_iso8601 $word $peer_port $word $number $number $number` +
		` $status $word $number $bytes_sent "$request" "$http_user_agent"`, exact},
	{"gin", `[GIN] $time_local | $status | $word | $remote_addr | $method "$request_uri"`, among},
	{"uvicorn", `INFO: $peer_port - "$request" $status`, among},
	{"rails", `${_}Started $method "$request_uri" for $remote_addr at $time_local`, among},
	{"uwsgi", `[pid: $word|app: $word|req: $word] $remote_addr ($remote_user) {$_}` +
		` [$time_local] $request => generated $bytes_sent bytes`, among},
	{"flask", `$peer - - [$day $clock] "$request" $status $body_bytes_sent`, among},
	{"chi", `$day $clock ${_}"$request" from $peer - $status`, among},
	{"squid", `$seconds $number $remote_addr $word/$status $bytes_sent $method $request_uri` +
		` $remote_user`, exact},
	{"nginx-proxy-manager", `[$time_local] $word $word $status - $method $word $host` +
		` "$request_uri" [Client $remote_addr] [Length $bytes_sent]`, exact},
}

// look is how the lines of a format are found.
type look int

const (
	exact look = iota // each line begins as the pattern does
	whole             // and ends there
	among             // the lines are among messages of the program
)

// strict has the variables whose values have one form, which tells the patterns apart, and what
// they are of if that is not their name.
var strict = map[string]struct {
	is func(b []byte) bool
	of string
}{
	"word":   {is: func(b []byte) bool { return len(b) > 0 && bytes.IndexByte(b, ' ') < 0 }},
	"number": {is: func(b []byte) bool { return len(b) > 0 && consistsOf(b, digits+".-+") }},
	"owner":  {is: func(b []byte) bool { return len(b) == 64 && consistsOf(b, digits+"abcdef") }},
	"status": {is: func(b []byte) bool {
		return isStatus(b) || slices.Contains([]string{"0", "-1", "[accepted]"}, string(b))
	}},
	"time_iso8601": {is: func(b []byte) bool { return len(b) > 10 && b[4] == '-' && b[10] == 'T' }},
	"day": {func(b []byte) bool {
		return len(b) > 9 && (b[2] == '/' || b[4] == '/')
	}, "date"},
	"seconds": {func(b []byte) bool {
		return len(b) > 10 && b[10] == '.' && consistsOf(b[:10], digits)
	}, "msec"},
	"operation": {is: func(b []byte) bool {
		return !bytes.HasPrefix(b, []byte("BATCH.")) && !bytes.HasPrefix(b, []byte("S3."))
	}},
	"clock":  {func(b []byte) bool { return len(b) == len("15:04:05") && b[2] == ':' }, "time"},
	"method": {is: isMethod},
	"peer":   {isClient, "remote_addr"},
	"peer_port": {func(b []byte) bool {
		return len(withoutPort(b)) < len(b) && isClient(withoutPort(b))
	}, "remote_addr"},
	"type": {is: func(b []byte) bool {
		return slices.Contains([]string{"http", "https", "h2", "grpcs", "ws", "wss"}, string(b))
	}},
}

// consistsOf reports whether b has no other bytes than these.
func consistsOf(b []byte, these string) bool { return len(bytes.Trim(b, these)) == 0 }

func newPatternParsers(extra []string) (all []namedParser) {
	for _, known := range patterns {
		p, err := newFormatParser(known.text, Schema{Extra: extra})
		if err != nil {
			panic(err) // a mistake in the table
		}
		p.format, p.ends = known.format, known.is == whole
		all = append(all, namedParser{p, known.format, known.is == among})
	}
	return all
}
