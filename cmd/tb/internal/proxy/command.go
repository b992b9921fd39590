package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/cidr"
	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/cli"
	"github.com/seed-181794aa/ratelimit/tb"
)

// policyOff and adminOff are the values of --policy and --admin that turn them off.
const (
	policyOff = "off"
	adminOff  = "off"
)

// Command is `tb proxy`. Its fields are its flags, and Vars has their help.
type Command struct {
	Upstream     upstream      `placeholder:"URL" help:"${proxy_upstream}"`
	PreserveHost bool          `default:"true" negatable:"" help:"${proxy_host}"`
	Timeout      time.Duration `name:"upstream-timeout" default:"60s" help:"${proxy_timeout}"`

	Policy   string         `placeholder:"FILE" help:"${proxy_policy}"`
	Trusted  []cidr.Network `name:"trusted-proxies" placeholder:"CIDR" help:"${proxy_trusted}"`
	MaxKeys  int            `default:"1048576" help:"${proxy_max_keys}"`
	Overflow string         `enum:"forgive,refuse" default:"forgive" help:"${proxy_overflow}"`
	Fields   string         `enum:"all,refused" default:"all" help:"${proxy_fields}"`

	Listen   string        `default:"127.0.0.1:8080" help:"${proxy_listen}"`
	Admin    string        `default:"127.0.0.1:8081" help:"${proxy_admin}"`
	Shutdown time.Duration `name:"shutdown-timeout" default:"10s" help:"${proxy_shutdown}"`

	AccessLog Access `enum:"off,refused,all" default:"refused" help:"${proxy_access}"`
	LogFormat string `enum:"text,json" default:"text" help:"${proxy_format}"`
	ShowKeys  bool   `help:"${proxy_keys}"`
}

// upstream is the URL of a server.
type upstream struct{ url.URL }

// UnmarshalText parses a URL.
func (u *upstream) UnmarshalText(text []byte) error {
	parsed, err := url.Parse(string(text))
	if err != nil {
		return err
	}
	if parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" ||
		parsed.User != nil { // would not be sent to the upstream
		return fmt.Errorf("%q: want a URL such as http://localhost:3000, without a user",
			parsed.Redacted())
	}
	u.URL = *parsed
	return nil
}

// usesDemo reports whether the upstream is the built-in demo.
func (c *Command) usesDemo() bool { return c.Upstream.Host == "" }

// fromFile reports whether the policy comes from a file.
func (c *Command) fromFile() bool { return c.Policy != "" && c.Policy != policyOff }

// limiterOptions returns the options of the rules' limiters.
func (c *Command) limiterOptions() []tb.Option {
	overflow := tb.ForgiveLeast
	if c.Overflow == "refuse" {
		overflow = tb.RefuseNew
	}
	return []tb.Option{tb.WithMaxKeys(c.MaxKeys), tb.WithOverflow(overflow)}
}

// Validate returns an error for a flag that is out of range.
func (c *Command) Validate() error {
	if _, err := tb.Apply(c.limiterOptions()...); err != nil {
		return fmt.Errorf("--max-keys=%d: want a whole number, 1 to %d", c.MaxKeys, 1<<30)
	}
	if c.Timeout < 0 || c.Shutdown < 0 {
		return errors.New("--upstream-timeout, --shutdown-timeout: want 0s or more")
	}
	return nil
}

// Run serves until ctx is done. Then it waits for the requests under way and returns nil.
func (c *Command) Run(ctx context.Context, std cli.IO) error {
	var handler slog.Handler = slog.NewTextHandler(std.Stderr, nil)
	if c.LogFormat == "json" {
		handler = slog.NewJSONHandler(std.Stderr, nil)
	}
	r := &runner{Command: c, log: slog.New(handler)}
	err := r.load()
	if err == nil {
		err = r.listen()
	}
	if err == nil {
		err = r.build()
	}
	if err != nil {
		r.close()
		return err
	}
	return r.serve(ctx, std.Stdout)
}
