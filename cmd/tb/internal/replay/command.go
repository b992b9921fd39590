package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/samplelog"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Command is `tb replay`: its fields are its flags. Vars has their help.
type Command struct {
	Files []string `arg:"" optional:"" name:"file" help:"${replay_file}"`

	Rate  Rate  `placeholder:"TOKENS/TIME" help:"${replay_rate}"`
	Burst Burst `placeholder:"TOKENS" help:"${replay_burst}"`
	Sweep Sweep `placeholder:"LISTS" help:"${replay_sweep}"`

	Key        []string          `default:"ip" help:"${replay_key}"`
	IPv6Prefix int               `name:"ipv6-prefix" default:"64" help:"${replay_ipv6_prefix}"`
	Cost       Cost              `default:"1" help:"${replay_cost}"`
	Field      map[string]string `mapsep:"," placeholder:"NAME=FIELD" help:"${replay_field}"`

	MaxKeys  int    `default:"1048576" help:"${replay_max_keys}"`
	Overflow string `enum:"forgive,refuse" default:"forgive" help:"${replay_overflow}"`
	Impl     string `enum:"cas,mutex" default:"cas" help:"${replay_impl}"`

	JSON bool   `name:"json" help:"${replay_json}"`
	SVG  string `name:"svg" placeholder:"FILE" help:"${replay_svg}"`

	Sample      bool `help:"${replay_sample}"`
	SampleLines int  `default:"100000" help:"${replay_sample_lines}"`
}

// IO is what a command reads from and writes to.
type IO struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// Validate returns an error for flags that do not go together or are out of range.
func (c *Command) Validate() error {
	switch {
	case c.Sample && len(c.Files) > 0:
		return errors.New("--sample replays a generated log: want no FILE with it")
	case !c.Sample && len(c.Files) == 0:
		return errors.New("want a FILE to replay, - for standard input, or --sample")
	case c.SampleLines < 1 || c.SampleLines > samplelog.MaxLines:
		return fmt.Errorf("--sample-lines=%d: want 1 to %d", c.SampleLines, samplelog.MaxLines)
	case c.IPv6Prefix < 1 || c.IPv6Prefix > 128:
		return fmt.Errorf("--ipv6-prefix=%d: want 1 to 128", c.IPv6Prefix)
	case c.SVG != "" && len(c.Sweep.Rates)+len(c.Sweep.Bursts) > 0:
		return errors.New("--svg draws a single limit: want no --sweep with it")
	}
	if _, err := tb.Apply(tb.WithMaxKeys(c.MaxKeys)); err != nil {
		return fmt.Errorf("--max-keys: %w", err)
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
		Keys: c.Key, IPv6Prefix: c.IPv6Prefix, Cost: c.Cost,
		MaxKeys: c.MaxKeys, Overflow: tb.ForgiveLeast, Impl: c.Impl,
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
// too, and the error returned that ended it.
func (c *Command) Run(ctx context.Context, std IO) error {
	o, err := c.options()
	if err != nil {
		return err
	}
	logs, size, err := c.logs(std.Stdin)
	if err != nil {
		return err
	}
	bar := newProgress(std.Stderr, size)
	for i := range logs {
		if bar != nil {
			logs[i] = logs[i].watched(bar)
		}
	}
	res, err := Run(ctx, o, accesslog.Schema{Names: c.Field}, logs)
	if bar != nil {
		bar.Finish()
	}
	if res == nil {
		return err
	}
	res.Report.Sample = c.Sample
	if res.Report.Interrupted {
		err = errors.New("interrupted")
	}
	return errors.Join(c.print(res, std.Stdout), err)
}

// logs returns what to replay and its length.
func (c *Command) logs(stdin io.Reader) ([]Input, int64, error) {
	if !c.Sample {
		return inputs(c.Files, stdin)
	}
	return []Input{{"generated sample", func() (io.ReadCloser, error) {
		return io.NopCloser(samplelog.New(c.SampleLines)), nil
	}}}, 0, nil
}

// print writes the report in the forms asked for.
func (c *Command) print(res *Result, stdout io.Writer) error {
	if c.SVG != "" {
		if err := writeFile(c.SVG, res.WriteSVG); err != nil {
			return err
		}
	}
	if !c.JSON {
		return res.Report.WriteText(stdout)
	}
	enc := json.NewEncoder(stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(&res.Report)
}

// writeFile creates a file with what write writes.
func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
