package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/algorithm"
	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/cidr"
	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/cli"
	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/samplelog"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Command is `tb replay`. Its fields are the flags; Vars has their help.
type Command struct {
	Files []string `arg:"" optional:"" name:"file" help:"${replay_file}"`

	Rate  Rate  `type:"text" placeholder:"TOKENS/TIME" help:"${replay_rate}"`
	Burst Burst `type:"text" placeholder:"TOKENS" help:"${replay_burst}"`
	Sweep Sweep `placeholder:"LISTS" help:"${replay_sweep}"`

	Suggest Share    `type:"text" placeholder:"PERCENT" help:"${replay_suggest}"`
	Check   []string `sep:"none" placeholder:"FILE" help:"${replay_check}"`
	ByPath  bool     `help:"${replay_by_path}"`
	Export  string   `enum:",policy,caddy,nginx,envoy" default:"" help:"${replay_export}"`
	Policy  string   `placeholder:"FILE" help:"${replay_policy}"`

	Key        []string          `sep:"none" default:"ip" help:"${replay_key}"`
	IPv6Prefix prefix            `type:"text" name:"ipv6-prefix" default:"64" help:"${replay_prefix}"`
	Trusted    []cidr.Network    `name:"trusted-proxies" placeholder:"CIDR" help:"${replay_trusted}"`
	Cost       Cost              `type:"text" default:"1" help:"${replay_cost}"`
	Field      map[string]string `mapsep:"," placeholder:"NAME=FIELD" help:"${replay_field}"`
	Format     string            `placeholder:"LOG_FORMAT" help:"${replay_format}"`

	AllowMalformed bool `name:"allow-malformed" help:"${replay_malformed}"`

	MaxKeys  maxKeys `type:"text" default:"1048576" help:"${replay_max_keys}"`
	Overflow string  `enum:"forgive,refuse" default:"forgive" help:"${replay_overflow}"`

	Algorithm []string `sep:"none" placeholder:"LIST" help:"${replay_algorithm}"`

	JSON bool   `name:"json" help:"${replay_json}"`
	SVG  string `name:"svg" placeholder:"FILE" help:"${replay_svg}"`
	HTML string `name:"html" placeholder:"FILE" help:"${replay_html}"`

	Sample      bool        `help:"${replay_sample}"`
	SampleLines sampleLines `type:"text" default:"100000" help:"${replay_sample_lines}"`
}

// Validate returns an error for flags that exclude each other or are out of range.
func (c *Command) Validate() error {
	switch {
	case c.Sample && len(c.Files) > 0:
		return errors.New("want either FILE or --sample, and not both")
	case !c.Sample && len(c.Files) == 0:
		return errors.New("want a FILE to replay, - for standard input, or --sample")
	case len(c.Algorithm) > 0 && c.Overflow != "forgive":
		return errors.New("want either --algorithm or --overflow, and not both")
	}
	if err := errors.Join(c.validatePictures(), c.validateSchema()); err != nil {
		return err
	}
	_, err := c.options()
	return err
}

// options returns the options that the flags describe.
func (c *Command) options() (Options, error) {
	o := Options{
		Rates: c.Sweep.Rates, Bursts: c.Sweep.Bursts,
		Trusted: cidr.Prefixes(c.Trusted), IPv6Prefix: int(c.IPv6Prefix), Cost: c.Cost,
		MaxKeys: int(c.MaxKeys), Overflow: tb.ForgiveLeast,
		Keys: splitLists(c.Key), Algorithms: splitLists(c.Algorithm), Picture: c.wantsPicture(),
		AllowMalformed: c.AllowMalformed, ByPath: c.ByPath, Export: c.Export,
	}
	if c.Overflow == "refuse" {
		o.Overflow = tb.RefuseNew
	}
	rate, burst := c.Rate != Rate{}, c.Burst != 0
	if o.Suggest = c.Suggest; !rate && !burst && len(o.Rates)+len(o.Bursts)+len(c.Algorithm) == 0 &&
		c.Policy == "" && !c.Suggest.isSet() {
		o.Suggest, o.FirstLook = newShare(1), true
	}
	switch {
	case !o.Suggest.isSet() && (c.ByPath || c.Export != "" || len(c.Check) > 0):
		return o, errors.New("--by-path, --export and --check: want --suggest, and no limit")
	case slices.Contains(c.Check, "-"):
		return o, errors.New("--check: want files, and not standard input")
	case c.Policy != "":
		return o, c.checkPolicyFlags(&o)
	case o.Suggest.isSet():
		if err := c.setSuggestion(&o); err != nil {
			return o, err
		}
	case rate == (len(o.Rates) > 0):
		return o, errors.New("want either --rate, such as 5, 2.5/s, 300/m or 1/24h," +
			" or rates in --sweep")
	case burst == (len(o.Bursts) > 0):
		return o, errors.New("want either --burst, a whole number from 1, or bursts in --sweep")
	case rate:
		o.Rates = []Rate{c.Rate}
	}
	if burst {
		o.Bursts = []Burst{c.Burst}
	}
	return o, o.validate()
}

// splitLists splits lists with commas. Kong would drop an empty name at the end.
func splitLists(lists []string) (names []string) {
	for _, list := range lists {
		names = append(names, strings.Split(list, ",")...)
	}
	return names
}

// Run replays the log and prints the report. After an error it prints the report on the
// part of the input that was replayed. Run looks for the files and creates the pictures before a
// long replay, so that a wrong name does not fail after it.
func (c *Command) Run(ctx context.Context, std cli.IO) error {
	o, err := c.options()
	if err != nil {
		return err
	}
	if err := c.readPolicy(&o, std.Stderr); err != nil {
		return err
	}
	logs, size, err := c.logs(std.Stdin)
	if err != nil {
		return err
	}
	others, _, err := findInputs(c.Check, nil)
	if err != nil {
		return err
	}
	pictures, err := c.createPictures()
	if err != nil {
		return err
	}
	res, err := c.replay(ctx, o, logs, newProgress(std.Stderr, size))
	if res == nil {
		return err
	}
	err = errors.Join(err, c.check(ctx, o, res.Report.Suggestion, others))
	res.Report.Sample = c.Sample
	if res.Report.Interrupted {
		err = errors.Join(err, errors.New("interrupted"))
	}
	err = errors.Join(err, res.Report.checkNames(), c.print(&res.Report, std.Stdout))
	for _, p := range pictures {
		err = errors.Join(err, p.write(res, p.file), p.file.Close())
	}
	return err
}

// replay replays the logs and shows its progress in the bar, which may be nil.
func (c *Command) replay(ctx context.Context, o Options, logs []Input,
	bar *progress) (*Result, error) {
	if bar != nil {
		defer bar.Finish()
		for i := range logs {
			logs[i] = logs[i].withProgress(bar)
		}
	}
	return Run(ctx, o, c.schema(), logs)
}

// logs returns the inputs and their length in bytes, -1 if it is not known.
func (c *Command) logs(stdin io.Reader) ([]Input, int64, error) {
	if !c.Sample {
		return findInputs(c.Files, stdin)
	}
	return []Input{{"generated sample", func() (io.ReadCloser, error) {
		return io.NopCloser(samplelog.New(int(c.SampleLines))), nil
	}}}, 0, nil
}

// print writes the report as text or JSON. A text without a request would say nothing.
func (c *Command) print(rep *Report, stdout io.Writer) error {
	if !c.JSON {
		if rep.Requests == 0 {
			return nil
		}
		return rep.WriteText(stdout)
	}
	enc := json.NewEncoder(stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(rep)
}

// Vars has the help of the flags for kong.
var Vars = kong.Vars{
	"replay_file": "Access logs, plain or packed by gzip, zstd or bzip2, in any order; - is standard" +
		" input, and 'access.log*' stands for the files that match. At least one is needed" +
		" without --sample.",

	"replay_rate":  "Refill rate: 5 (a second), 2.5/s, 300/m, 1/24h.",
	"replay_burst": "Capacity of a bucket, in tokens.",
	"replay_sweep": "Compare all pairs of rates and bursts, as in 'rate=1,2,300/m burst=10,20'." +
		" --rate or --burst stands in for a list that is left out.",

	"replay_suggest": "Suggest a limit with which at most a share of the clients is ever refused, as" +
		" in 0.1%, and compare the bursts that the log needs at each rate: --rate, the rates of" +
		" --sweep, or 24 rates from 0.01 to 70 a second.",

	"replay_check": "With --suggest, replay the suggested limit on this log, too, such as the next" +
		" week's. May be given several times.",
	"replay_by_path": "With --suggest, find limits of the paths with the most requests, too.",
	"replay_export": "With --suggest, print the limits as a policy, or as a configuration of caddy," +
		" nginx or envoy (its rate limit service).",

	"replay_policy": "Replay a policy, as tb proxy would decide with it, instead of a limit. It" +
		" has its own keys and costs.",

	"replay_key": "Key of a bucket: ip, user, path, host, or a field such as" +
		" request.headers.X-Api-Key. Several, with commas between, make a composite key.",
	"replay_prefix": "Bits of an IPv6 address that make a client, 1 to 128.",
	"replay_trusted": "Networks of the proxies in front of the server, separated by commas, whose" +
		" X-Forwarded-For is believed.",
	"replay_cost": "Tokens that a request takes: a number, bytes, bytes/KiB (kB, MiB, …) or a" +
		" JSON field.",
	"replay_field": "Where a log that names its fields has time, ip (the peer), forwarded, user," +
		" host, uri or size, instead of the usual fields.",
	"replay_format": "The log_format of nginx that wrote the log, such as '$$remote_addr" +
		" [$$time_local] \"$$request\"', instead of detection.",

	"replay_malformed": "Accept a log of which most lines are malformed, such as one that several" +
		" programs write.",

	"replay_max_keys": "Bound on the keys of each limiter, and so on memory: 1 to 1073741824.",
	"replay_overflow": "What happens to a new key while no bucket is full: forgive the smallest" +
		" debt, or refuse the key.",
	"replay_algorithm": "Compare algorithms under the limit, in one pass: some of " +
		strings.Join(algorithm.Names, ", ") + ".",

	"replay_json": "Print the report as JSON.",
	"replay_svg": "Also draw the requests over time, and the tokens of the keys refused most in" +
		" their worst minutes, into FILE.",
	"replay_html": "Also write a page with this picture and a table of keys into FILE. With" +
		" --suggest, a slider shows what each burst refuses.",

	"replay_sample": "Replay a generated log instead of files.",
	"replay_sample_lines": fmt.Sprintf("Lines of the generated log, %d to %d.",
		samplelog.MinLines, samplelog.MaxLines),
}

// Help explains what the help of the flags does not.
func (*Command) Help() string {
	return `Feeds access logs through the limiter, with the time of each line as its clock, and
reports what the limit would have done. Several files are merged by time. Without a limit,
it shows how the first lines are read, and suggests one.

The format of each file is detected, also in the lines of syslog, Docker, Kubernetes and
journald:

    Common and Combined Log Format   Apache, nginx, Traefik
    JSON lines                       Caddy, nginx, Traefik, Cloudflare, Istio, Kong, clouds
    W3C Extended Log File Format     IIS, CloudFront; Zeek
    HTTP and HTTPS log               HAProxy
    access log                       AWS (ALB, ELB, S3), Envoy, Istio, APISIX, Squid, uWSGI,
                                     Gin, nginx-proxy-manager
    logfmt                           Heroku, or with the field names of JSON

The client is the one that "tb proxy" would find with the same --trusted-proxies: the
peer or, behind trusted proxies, the last entry of X-Forwarded-For that is not a trusted
proxy. A Combined line has X-Forwarded-For in quotes after the user agent. If a log has a
list instead of the peer, the last entry counts as the peer.

No request is free. A response of size 0 or without a size costs as much as one byte. A
request without a positive number in its cost field costs one token.

Exit status:

    0  The input was replayed.
    1  A part of the input was not replayed, because of an error or an interrupt, most lines
       of a log are malformed, or no request has a part of the key or the cost field. The
       report covers the rest.
    2  The flags have a mistake.`
}
