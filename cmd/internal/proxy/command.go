package proxy

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
	"github.com/seed-181794aa/ratelimit/cmd/internal/daemon"
	"github.com/seed-181794aa/ratelimit/cmd/internal/redisurl"
)

const off = "off" // of --policy and --admin

// Command is `tb-proxy`. Its fields are its flags in groups, and Vars has their help.
type Command struct {
	upstreamFlags `group:"Upstream:"`
	limitFlags    `group:"Limits:"`
	redisFlags    `group:"Redis:"`
	responseFlags `group:"Responses:"`
	clientFlags   `group:"Clients:"`
	processFlags  `group:"Operation:"`
}

type upstreamFlags struct {
	Upstream     upstream      `placeholder:"URL" help:"${proxy_upstream}"`
	PreserveHost bool          `default:"true" negatable:"" help:"${proxy_host}"`
	Timeout      time.Duration `name:"upstream-timeout" default:"60s" help:"${proxy_timeout}"`
}

type limitFlags struct {
	Policy     string        `placeholder:"FILE" help:"${proxy_policy}"`
	Trusted    []cli.Network `name:"trusted-proxies" placeholder:"CIDR" help:"${proxy_trusted}"`
	IPv4Prefix int           `name:"ipv4-prefix" default:"32" help:"${proxy_ipv4}"`
	IPv6Prefix int           `name:"ipv6-prefix" default:"64" help:"${proxy_ipv6}"`
	MaxKeys    int           `default:"1048576" help:"${proxy_max_keys}"`
	Overflow   string        `enum:"forgive,refuse" default:"forgive" help:"${proxy_overflow}"`

	ClientAddressHeader string `default:"X-Forwarded-For" help:"${proxy_address_header}"`
}

type redisFlags struct {
	Redis        redisurl.URL  `placeholder:"URL" help:"${proxy_redis}"`
	RedisTimeout time.Duration `default:"50ms" help:"${proxy_redis_timeout}"`
	RedisFailure string        `enum:"allow,refuse" default:"allow" help:"${proxy_redis_failure}"`
}

type responseFlags struct {
	Fields       string `enum:"all,refused" default:"all" help:"${proxy_fields}"`
	PolicyField  bool   `help:"${proxy_policy_field}"`
	XRateLimit   bool   `name:"x-ratelimit" help:"${proxy_x}"`
	ReasonField  string `help:"${proxy_reason}"`
	SharedSecret string `placeholder:"TEXT" help:"${proxy_secret}"`
}

type clientFlags struct {
	Listen        string        `default:"127.0.0.1:8080" help:"${proxy_listen}"`
	TLSCert       string        `name:"tls-cert" placeholder:"FILE" help:"${proxy_cert}"`
	TLSKey        string        `name:"tls-key" placeholder:"FILE" help:"${proxy_key}"`
	H2C           bool          `name:"h2c" help:"${proxy_h2c}"`
	Underscores   bool          `name:"underscores-in-headers" help:"${proxy_underscores}"`
	HeaderTimeout time.Duration `default:"10s" help:"${proxy_header_timeout}"`
	BodyTimeout   time.Duration `default:"60s" help:"${proxy_body_timeout}"`
}

type processFlags struct {
	Admin     string        `default:"127.0.0.1:8081" help:"${proxy_admin}"`
	Delay     time.Duration `name:"shutdown-delay" default:"300ms" help:"${proxy_delay}"`
	Shutdown  time.Duration `name:"shutdown-timeout" default:"10s" help:"${proxy_shutdown}"`
	AccessLog Access        `enum:"off,refused,all" default:"refused" help:"${proxy_access}"`
	LogFormat string        `enum:"text,json" default:"text" help:"${proxy_format}"`
	ShowKeys  bool          `help:"${proxy_keys}"`
	State     string        `placeholder:"FILE" help:"${proxy_state}"`
	Interval  time.Duration `name:"state-interval" default:"1m" help:"${proxy_state_interval}"`
}

type upstream struct{ url.URL }

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

func (c *Command) usesDemo() bool { return c.Upstream.Host == "" }

// Run serves until ctx is done. Then it waits for the requests under way and returns nil.
func (c *Command) Run(ctx context.Context, std cli.IO) error {
	p := daemon.NewProcess(std.Stdout, std.Stderr, c.LogFormat)
	defer p.Close()
	r := &runner{Command: c, Process: p, policyHangups: daemon.CatchHangups()}
	return daemon.InOrder(ctx, r.load, r.dial, r.listen, r.build, r.serve)
}
