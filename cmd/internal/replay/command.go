package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/cmd/internal/algorithm"
	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
	"github.com/seed-181794aa/ratelimit/cmd/internal/samplelog"
	"github.com/seed-181794aa/ratelimit/httplimit/policy"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Command is `tb replay`. Its fields are the flags. Vars has the longer helps.
type Command struct {
	Files []string `arg:"" optional:"" name:"file" help:"${replay_file}"`
	Options
	JSON   bool   `name:"json" help:"Print the report as JSON."`
	HTML   string `name:"html" xor:"html" placeholder:"FILE" help:"${replay_html}"`
	Sample bool   `help:"Replay a generated log of 100,000 lines."`
}

// Options say what to do with the requests of a log: suggest a limit, or decide them by a policy or
// by a limit, perhaps beside other algorithms.
type Options struct {
	Rate  Rate `xor:"rate" placeholder:"TOKENS/TIME" help:"Refill rate: 5/s, 300/m, 1/24h."`
	Burst int  `xor:"limit" placeholder:"TOKENS" help:"Capacity of a bucket, in tokens."`

	Suggest *Share  `xor:"limit,others" placeholder:"PERCENT" help:"${replay_suggest}"`
	ByPath  bool    `help:"Find limits of the paths with the most requests, too."`
	Export  *string `enum:"policy,nginx" placeholder:"FORMAT" help:"${replay_export}"`

	PolicyFile string `name:"policy" xor:"limit,others,rate,html" placeholder:"FILE" help:"${policy}"`

	Keys       []string      `name:"key" default:"ip" help:"${replay_key}"`
	IPv6Prefix int           `name:"ipv6-prefix" default:"64" help:"Bits of IPv6 that are a client."`
	Trusted    []cli.Network `name:"trusted-proxies" placeholder:"CIDR" help:"${replay_trusted}"`

	Field  map[string]string `mapsep:"," placeholder:"NAME=FIELD" help:"${replay_field}"`
	Format string            `placeholder:"LOG_FORMAT" help:"${replay_format}"`

	MaxKeys    int      `default:"1048576" help:"${replay_max_keys}"`
	Algorithms []string `name:"algorithm" xor:"others" placeholder:"LIST" help:"${replay_algorithm}"`

	Rates  []Rate         `kong:"-"` // at which a limit may be suggested
	Policy *policy.Policy `kong:"-"` // of the PolicyFile
}

// Validate returns an error for flags that exclude each other or are out of range.
func (c *Command) Validate() error {
	switch {
	case c.Sample && len(c.Files) > 0:
		return errors.New("want either FILE or --sample, and not both")
	case slices.Contains(c.Files, ""):
		return errors.New("the name of a FILE is empty")
	case !c.Sample && len(c.Files) == 0:
		return errors.New("want a FILE to replay, - for standard input, or --sample")
	case strings.HasPrefix(c.HTML, "-"):
		return fmt.Errorf("--html=%s: want the name of a file", c.HTML)
	}
	if err := (accesslog.Schema{Names: c.Field}).Validate(); err != nil {
		return fmt.Errorf("--field: %w", err)
	}
	if err := c.schema().Validate(); err != nil {
		return fmt.Errorf("--format: %w", err)
	}
	err := c.complete()
	if err == nil && c.PolicyFile == "" {
		_, err = newMode(&c.Options)
	}
	return err
}

func (o *Options) schema() accesslog.Schema {
	return accesslog.Schema{Names: o.Field, LogFormat: o.Format}
}

// complete sets what follows from the flags, or returns an error if they do not fit. The policy is
// read later.
func (o *Options) complete() (err error) {
	rate, burst, others := o.Rate != Rate{}, o.Burst != 0, len(o.Algorithms) > 0
	if !rate && !burst && !others && o.PolicyFile == "" && o.Suggest == nil {
		one := Share(1)
		o.Suggest = &one
	}
	switch suggest := o.Suggest != nil; {
	case o.IPv6Prefix < 1, o.IPv6Prefix > 128:
		return errors.New("--ipv6-prefix: want 1 to 128 bits")
	case o.MaxKeys < 1, o.MaxKeys > 1<<30:
		return errors.New("--max-keys: want a whole number, 1 to 1073741824")
	case o.Burst < 0, o.Burst > tb.MaxCapacity:
		return errors.New("--burst: want a whole number, 1 to 1073741824")
	case o.PolicyFile != "" && !slices.Equal(o.Keys, []string{"ip"}):
		return errors.New("want either --policy or --key, and not both")
	case !suggest && (o.ByPath || o.Export != nil):
		return errors.New("--by-path and --export: want --suggest, and no limit")
	case suggest && rate:
		o.Rates = []Rate{o.Rate}
	case suggest:
		o.Rates, err = ratesOf(defaultRates)
	case o.PolicyFile != "":
	case !rate:
		return errors.New("want --rate, too, such as 5, 2.5/s, 300/m or 1/24h")
	case !burst:
		return errors.New("want --burst, too, a whole number, 1 to 1073741824")
	}
	return err
}

// Run replays the log and prints the report. After an error it prints the report on the
// part of the input that was replayed. Run looks for the files and creates the page before a
// long replay, so that a wrong name does not fail after it.
func (c *Command) Run(ctx context.Context, std cli.IO) error {
	if err := c.readPolicy(ctx, std.Stderr); err != nil {
		return err
	}
	logs, err := c.logs(std.Stdin)
	if err != nil {
		return err
	}
	page, err := c.createHTML()
	if err != nil {
		return err
	}
	rep, err := Run(ctx, c.Options, logs)
	if rep == nil {
		return err
	}
	rep.Sample = c.Sample
	if rep.Interrupted {
		err = errors.Join(err, errors.New("interrupted"))
	}
	if page != nil {
		err = errors.Join(err, rep.WriteHTML(page), page.Close())
	}
	if err != nil && rep.Requests == 0 && !c.JSON {
		return err // which says why there is none
	}
	err = errors.Join(err, rep.checkNames())
	if c.JSON || c.Export != nil { // for a script
		err = errors.Join(err, rep.checkAnswer())
	}
	// A broken pipe kills the process here.
	if c.Export != nil {
		return errors.Join(err, c.print(rep, std.Stderr), rep.printExport(std.Stdout))
	}
	return errors.Join(err, c.print(rep, std.Stdout))
}

func (c *Command) logs(stdin io.Reader) ([]Input, error) {
	if !c.Sample {
		return findInputs(c.Files, stdin)
	}
	return []Input{{"generated sample", func() (io.ReadCloser, error) {
		return io.NopCloser(samplelog.New(100_000)), nil
	}}}, nil
}

func (c *Command) print(rep *Report, stdout io.Writer) error {
	if !c.JSON {
		return rep.WriteText(stdout)
	}
	enc := json.NewEncoder(stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(rep)
}

// createHTML creates the file of --html, and returns nil without the flag. It replaces only an
// empty file or a page of its own: the name of a log may stand behind --html by mistake.
func (c *Command) createHTML() (*os.File, error) {
	if c.HTML == "" {
		return nil, nil
	}
	if info, err := os.Stat(c.HTML); err == nil && info.Mode().IsRegular() {
		file, err := os.Open(c.HTML)
		if err != nil {
			return nil, err
		}
		begin, err := io.ReadAll(io.LimitReader(file, int64(len(pageBegin))))
		if err = errors.Join(err, file.Close()); err != nil {
			return nil, err
		}
		if len(begin) > 0 && string(begin) != pageBegin {
			return nil, fmt.Errorf("%s exists, and is not a page of a replay", c.HTML)
		}
	}
	return os.Create(c.HTML)
}

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
	"replay_field": "Where a log that names its fields has time, ip (the peer), forwarded, user," +
		" host, method, uri, query, status or agent, instead of the usual fields.",
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
       interrupt, most lines of a log are malformed, or no request has a part of the key. The
       report covers the rest. With --json and --export, also if the answer may be wrong or
       there is none.
    2  The flags have a mistake.`
}
