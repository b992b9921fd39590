package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
	"github.com/seed-181794aa/ratelimit/cmd/internal/samplelog"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Command is `tb replay`. Its fields are the flags. Vars has the longer helps.
type Command struct {
	Files []string `arg:"" optional:"" name:"file" help:"${replay_file}"`

	Rate  Rate `xor:"rate" placeholder:"TOKENS/TIME" help:"Refill rate: 5/s, 300/m, 1/24h."`
	Burst int  `xor:"limit" placeholder:"TOKENS" help:"Capacity of a bucket, in tokens."`

	Suggest Share   `xor:"limit,others" placeholder:"PERCENT" help:"${replay_suggest}"`
	ByPath  bool    `help:"Find limits of the paths with the most requests, too."`
	Export  *string `enum:"policy,caddy,nginx" placeholder:"FORMAT" help:"${replay_export}"`
	Policy  string  `xor:"limit,others,rate,html" placeholder:"FILE" help:"${replay_policy}"`

	Key        []string          `default:"ip" help:"${replay_key}"`
	IPv6Prefix int               `name:"ipv6-prefix" default:"64" help:"Bits of IPv6 that are a client."`
	Trusted    []cli.Network     `name:"trusted-proxies" placeholder:"CIDR" help:"${replay_trusted}"`
	Cost       Cost              `default:"1" help:"${replay_cost}"`
	Field      map[string]string `mapsep:"," placeholder:"NAME=FIELD" help:"${replay_field}"`
	Format     string            `placeholder:"LOG_FORMAT" help:"${replay_format}"`

	MaxKeys   int      `default:"1048576" help:"${replay_max_keys}"`
	Algorithm []string `xor:"others" placeholder:"LIST" help:"${replay_algorithm}"`

	All  bool   `help:"Print up to 100 clients, and not only ten."`
	JSON bool   `name:"json" help:"Print the report as JSON."`
	HTML string `name:"html" xor:"html" placeholder:"FILE" help:"${replay_html}"`

	Sample bool `help:"Replay a generated log of 100,000 lines."`
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
	o, err := c.options()
	if err == nil && o.Policy == nil && c.Policy == "" {
		_, err = newMode(&o)
	}
	return err
}

// schema returns what the flags say about the logs.
func (c *Command) schema() accesslog.Schema {
	return accesslog.Schema{Names: c.Field, LogFormat: c.Format}
}

// options returns the options that the flags describe. The policy is read later.
func (c *Command) options() (Options, error) {
	o := Options{
		Schema: c.schema(), Rate: c.Rate, Burst: c.Burst, Algorithms: c.Algorithm, Suggest: c.Suggest,
		ByPath: c.ByPath, Keys: c.Key, Trusted: cli.Prefixes(c.Trusted),
		IPv6Prefix: c.IPv6Prefix, Cost: c.Cost, MaxKeys: c.MaxKeys,
		Picture: c.HTML != "", All: c.All,
	}
	if c.Export != nil {
		o.Export = *c.Export
	}
	rate, burst, others := c.Rate != Rate{}, c.Burst != 0, len(c.Algorithm) > 0
	if !rate && !burst && !others && c.Policy == "" && !c.Suggest.isSet() {
		o.Suggest = newShare(1)
	}
	switch suggest := o.Suggest.isSet(); {
	case c.IPv6Prefix < 1, c.IPv6Prefix > 128:
		return o, errors.New("--ipv6-prefix: want 1 to 128 bits")
	case c.MaxKeys < 1, c.MaxKeys > 1<<30:
		return o, errors.New("--max-keys: want a whole number, 1 to 1073741824")
	case c.Burst < 0, c.Burst > tb.MaxCapacity:
		return o, errors.New("--burst: want a whole number, 1 to 1073741824")
	case c.Policy != "" && (!slices.Equal(o.Keys, []string{"ip"}) || c.Cost.String() != "1"):
		return o, errors.New("want either --policy, or --key or --cost, and not both")
	case !suggest && (c.ByPath || c.Export != nil):
		return o, errors.New("--by-path and --export: want --suggest, and no limit")
	case suggest && rate:
		o.Rates = []Rate{c.Rate}
	case suggest:
		var err error
		o.Rates, err = ratesOf(defaultRates)
		return o, err
	case c.Policy != "":
	case !rate:
		return o, errors.New("want --rate, too, such as 5, 2.5/s, 300/m or 1/24h")
	case !burst:
		return o, errors.New("want --burst, too, a whole number, 1 to 1073741824")
	}
	return o, nil
}

// Run replays the log and prints the report. After an error it prints the report on the
// part of the input that was replayed. Run looks for the files and creates the page before a
// long replay, so that a wrong name does not fail after it.
func (c *Command) Run(ctx context.Context, std cli.IO) error {
	o, err := c.options()
	if err != nil {
		return err
	}
	if err := c.readPolicy(ctx, &o, std.Stderr); err != nil {
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
	res, err := Run(ctx, o, logs)
	if res == nil {
		return err
	}
	res.Report.Sample = c.Sample
	if res.Report.Interrupted {
		err = errors.Join(err, errors.New("interrupted"))
	}
	if page != nil {
		err = errors.Join(err, res.WriteHTML(page), page.Close())
	}
	if err != nil && res.Report.Requests == 0 && !c.JSON {
		return err // which says why there is none
	}
	err = errors.Join(err, res.Report.checkNames())
	if c.JSON || c.Export != nil { // for a script
		err = errors.Join(err, res.Report.checkAnswer())
	}
	// A broken pipe kills the process here.
	if c.Export != nil {
		return errors.Join(err, c.print(&res.Report, std.Stderr), res.Report.printExport(std.Stdout))
	}
	return errors.Join(err, c.print(&res.Report, std.Stdout))
}

// sampleLines is the length of a generated log.
const sampleLines = 100_000

// logs returns the inputs.
func (c *Command) logs(stdin io.Reader) ([]Input, error) {
	if !c.Sample {
		return findInputs(c.Files, stdin)
	}
	return []Input{{"generated sample", func() (io.ReadCloser, error) {
		return io.NopCloser(samplelog.New(sampleLines)), nil
	}}}, nil
}
