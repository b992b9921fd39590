package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/schollz/progressbar/v3"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/cli"
	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/samplelog"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Command is `tb replay`: its fields are its flags. Vars has their help.
type Command struct {
	Files []string `arg:"" optional:"" name:"file" help:"${replay_file}"`

	Rate  Rate  `type:"text" placeholder:"TOKENS/TIME" help:"${replay_rate}"`
	Burst Burst `type:"text" placeholder:"TOKENS" help:"${replay_burst}"`
	Sweep Sweep `placeholder:"LISTS" help:"${replay_sweep}"`

	Key        []string          `sep:"none" default:"ip" help:"${replay_key}"`
	IPv6Prefix prefix            `type:"text" name:"ipv6-prefix" default:"64" help:"${replay_prefix}"`
	Cost       Cost              `type:"text" default:"1" help:"${replay_cost}"`
	Field      map[string]string `mapsep:"," placeholder:"NAME=FIELD" help:"${replay_field}"`

	MaxKeys  maxKeys `type:"text" default:"1048576" help:"${replay_max_keys}"`
	Overflow string  `enum:"forgive,refuse" default:"forgive" help:"${replay_overflow}"`
	Impl     string  `enum:"cas,mutex" default:"cas" help:"${replay_impl}"`

	JSON bool   `name:"json" help:"${replay_json}"`
	SVG  string `name:"svg" placeholder:"FILE" help:"${replay_svg}"`

	Sample      bool        `help:"${replay_sample}"`
	SampleLines sampleLines `type:"text" default:"100000" help:"${replay_sample_lines}"`
}

// Validate returns an error for flags that do not go together or are out of range.
func (c *Command) Validate() error {
	switch {
	case c.Sample && len(c.Files) > 0:
		return errors.New("--sample replays a generated log: want no FILE with it")
	case !c.Sample && len(c.Files) == 0:
		return errors.New("want a FILE to replay, - for standard input, or --sample")
	case strings.HasPrefix(c.SVG, "-"):
		return fmt.Errorf("--svg=%s: want the name of a file", c.SVG)
	case c.SVG != "" && len(c.Sweep.Rates)+len(c.Sweep.Bursts) > 0:
		return errors.New("--svg draws a single limit: want no --sweep with it")
	}
	if err := (accesslog.Schema{Names: c.Field}).Validate(); err != nil {
		return fmt.Errorf("--field: %w", err)
	}
	_, err := c.options()
	return err
}

// options turns the flags into what is replayed.
func (c *Command) options() (Options, error) {
	o := Options{
		Rates: c.Sweep.Rates, Bursts: c.Sweep.Bursts,
		IPv6Prefix: int(c.IPv6Prefix), Cost: c.Cost,
		MaxKeys: int(c.MaxKeys), Overflow: tb.ForgiveLeast, Impl: c.Impl,
	}
	for _, names := range c.Key { // not split by kong, which drops an empty name at the end
		o.Keys = append(o.Keys, strings.Split(names, ",")...)
	}
	if c.Overflow == "refuse" {
		o.Overflow = tb.RefuseNew
	}
	rate, burst := c.Rate != Rate{}, c.Burst != 0
	switch {
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

// Run replays the log and prints the report. A report on part of the input is printed
// too, and the errors returned that kept it from the rest. What can fail before a long
// replay does not fail after it: the files are looked for and that for the SVG is made.
func (c *Command) Run(ctx context.Context, std cli.IO) error {
	o, err := c.options()
	if err != nil {
		return err
	}
	logs, size, err := c.logs(std.Stdin)
	if err != nil {
		return err
	}
	var svg *os.File
	if c.SVG != "" {
		if svg, err = os.Create(c.SVG); err != nil {
			return err
		}
	}
	res, err := c.replay(ctx, o, logs, newProgress(std.Stderr, size))
	if res == nil {
		return err
	}
	res.Report.Sample = c.Sample
	if res.Report.Interrupted {
		err = errors.Join(err, errors.New("interrupted"))
	}
	err = errors.Join(err, res.Report.absent(), c.print(&res.Report, std.Stdout))
	if svg != nil {
		err = errors.Join(err, res.WriteSVG(svg), svg.Close())
	}
	return err
}

// replay replays the logs and shows in the bar, if there is one, how far it is.
func (c *Command) replay(ctx context.Context, o Options, logs []Input,
	bar *progressbar.ProgressBar) (*Result, error) {
	if bar != nil {
		defer bar.Finish()
		for i := range logs {
			logs[i] = logs[i].watched(bar)
		}
	}
	return Run(ctx, o, accesslog.Schema{Names: c.Field}, logs)
}

// logs returns what to replay and its length.
func (c *Command) logs(stdin io.Reader) ([]Input, int64, error) {
	if !c.Sample {
		return inputs(c.Files, stdin)
	}
	return []Input{{"generated sample", func() (io.ReadCloser, error) {
		return io.NopCloser(samplelog.New(int(c.SampleLines))), nil
	}}}, 0, nil
}

// print writes the report in the form asked for.
func (c *Command) print(rep *Report, stdout io.Writer) error {
	if !c.JSON {
		return rep.WriteText(stdout)
	}
	enc := json.NewEncoder(stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(rep)
}
