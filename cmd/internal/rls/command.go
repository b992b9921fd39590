package rls

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
	"github.com/seed-181794aa/ratelimit/cmd/internal/daemon"
	"github.com/seed-181794aa/ratelimit/cmd/internal/redisurl"
	"github.com/seed-181794aa/ratelimit/tb"
)

// off is the value that turns --admin off.
const off = "off"

// Command is `tb-rls`. Its fields are its flags in groups, and Vars has their help.
type Command struct {
	limitFlags      `group:"Limits:"`
	xdsFlags        `group:"xDS:"`
	redisFlags      `group:"Redis:"`
	responseFlags   `group:"Responses:"`
	connectionFlags `group:"Connections:"`
	processFlags    `group:"Operation:"`
}

type limitFlags struct {
	Config       string `placeholder:"DIR" help:"${rls_config}"`
	Check        bool   `help:"${rls_check}"`
	MergeDomains bool   `help:"${rls_merge}"`
	ShadowMode   bool   `help:"${rls_shadow}"`
	QuotaMode    bool   `help:"${rls_quota}"`
	Hits         string `enum:"report,weight" default:"report" help:"${rls_hits}"`
	MaxKeys      int    `default:"1048576" help:"${rls_max_keys}"`
	Overflow     string `enum:"forgive,refuse" default:"forgive" help:"${rls_overflow}"`
}

// xdsFlags say where the limits are, if not in files.
type xdsFlags struct {
	XDS     []string `name:"xds" placeholder:"HOST:PORT" help:"${rls_xds}"`
	XDSNode string   `name:"xds-node" default:"default" help:"${rls_xds_node}"`
	XDSTLS  bool     `name:"xds-tls" help:"${rls_xds_tls}"`
	XDSCA   string   `name:"xds-ca" placeholder:"FILE" help:"${rls_xds_ca}"`
	XDSCert string   `name:"xds-cert" placeholder:"FILE" help:"${rls_xds_cert}"`
	XDSKey  string   `name:"xds-key" placeholder:"FILE" help:"${rls_xds_key}"`
}

type redisFlags struct {
	Redis        redisurl.URL  `placeholder:"URL" help:"${rls_redis}"`
	RedisTimeout time.Duration `default:"50ms" help:"${rls_redis_timeout}"`
	RedisFailure string        `enum:"error,allow,refuse" default:"error" help:"${rls_redis_failure}"`
}

type responseFlags struct {
	Fields          Fields   `enum:"off,refused,all" default:"refused" help:"${rls_fields}"`
	FieldNames      []string `default:"${rls_names}" placeholder:"NAMES" help:"${rls_field_names}"`
	PolicyField     bool     `help:"${rls_policy_field}"`
	XRateLimit      bool     `name:"x-ratelimit" help:"${rls_x}"`
	DynamicMetadata bool     `help:"${rls_metadata}"`
}

type connectionFlags struct {
	Listen      string `default:"127.0.0.1:8081" help:"${rls_listen}"`
	TLSCert     string `name:"tls-cert" placeholder:"FILE" help:"${rls_cert}"`
	TLSKey      string `name:"tls-key" placeholder:"FILE" help:"${rls_key}"`
	TLSClientCA string `name:"tls-client-ca" placeholder:"FILE" help:"${rls_client_ca}"`
	MaxStreams  uint32 `default:"1024" help:"${rls_streams}"`

	KeepaliveTime    time.Duration `default:"1m" help:"${rls_keepalive}"`
	KeepaliveTimeout time.Duration `default:"20s" help:"${rls_keepalive_timeout}"`
	KeepaliveMin     time.Duration `default:"10s" help:"${rls_keepalive_min}"`
	MaxIdle          time.Duration `name:"max-connection-idle" default:"0s" help:"${rls_idle}"`
	MaxAge           time.Duration `name:"max-connection-age" default:"24h" help:"${rls_age}"`
	MaxAgeGrace      time.Duration `name:"max-connection-age-grace" default:"1h" help:"${rls_grace}"`
}

type processFlags struct {
	Admin           string        `default:"127.0.0.1:6070" help:"${rls_admin}"`
	Delay           time.Duration `name:"shutdown-delay" default:"2s" help:"${rls_delay}"`
	Shutdown        time.Duration `name:"shutdown-timeout" default:"10s" help:"${rls_shutdown}"`
	UpstreamMetrics bool          `help:"${rls_upstream}"`
	LogFormat       string        `enum:"text,json" default:"text" help:"${rls_format}"`
	ShowKeys        bool          `help:"${rls_keys}"`
}

// Validate returns an error for a flag that is out of range or contradicts another.
func (c *Command) Validate() error {
	if _, err := tb.Apply(c.limiterOptions()...); err != nil {
		return fmt.Errorf("--max-keys=%d: want a whole number, 1 to %d", c.MaxKeys, 1<<30)
	}
	if err := cli.NotNegative(map[string]time.Duration{
		"--keepalive-time": c.KeepaliveTime, "--keepalive-timeout": c.KeepaliveTimeout,
		"--keepalive-min": c.KeepaliveMin, "--max-connection-idle": c.MaxIdle,
		"--max-connection-age": c.MaxAge, "--max-connection-age-grace": c.MaxAgeGrace,
		"--shutdown-delay": c.Delay, "--shutdown-timeout": c.Shutdown,
	}); err != nil {
		return err
	}
	switch {
	case (c.Config == "") == (len(c.XDS) == 0):
		return errors.New("--config, --xds: want one of them")
	case c.Check && c.Config == "":
		return errors.New("--check: want --config, too")
	case (c.XDSCert == "") != (c.XDSKey == ""):
		return errors.New("--xds-cert, --xds-key: want both or neither")
	case !c.XDSTLS && (c.XDSCA != "" || c.XDSCert != ""):
		return errors.New("--xds-ca, --xds-cert: want --xds-tls, too")
	case slices.Contains(c.XDS, ""):
		return errors.New("--xds: want host:port, or several with a comma between two")
	case len(c.FieldNames) != 3 || slices.ContainsFunc(c.FieldNames, isNoFieldName):
		return errors.New("--field-names: want three names of header fields: of the limit, of what is" +
			" left and of the reset")
	case c.MaxStreams < 1:
		return errors.New("--max-streams: want 1 or more")
	case c.RedisTimeout < time.Millisecond:
		return errors.New("--redis-timeout: want at least 1ms")
	case c.Redis.IsSet() && (c.MaxKeys != tb.DefaultMaxKeys || c.Overflow != "forgive"):
		return errors.New("--redis: want no --max-keys or --overflow, because the buckets are not in" +
			" memory")
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return errors.New("--tls-cert, --tls-key: want both or neither")
	case c.TLSClientCA != "" && c.TLSCert == "":
		return errors.New("--tls-client-ca: want --tls-cert and --tls-key, too")
	}
	return nil
}

// isNoFieldName reports whether a text cannot be the name of a field, as RFC 9110 has it.
func isNoFieldName(text string) bool { return !fieldName.MatchString(text) }

var fieldName = regexp.MustCompile("^[-!#$%&'*+.^_`|~0-9A-Za-z]+$")

// limiterOptions returns the options of the rules' limiters.
func (c *Command) limiterOptions() []tb.Option {
	return []tb.Option{tb.WithMaxKeys(c.MaxKeys), tb.WithOverflow(cli.Overflow(c.Overflow))}
}

// Run serves until ctx is done. Then it waits for the requests under way and returns nil. With
// Check, it only reads the configuration.
func (c *Command) Run(ctx context.Context, std cli.IO) error {
	p := daemon.NewProcess(std.Stdout, std.Stderr, c.LogFormat)
	defer p.Close()
	r := &runner{Command: c, Process: p}
	if c.Check {
		return r.check(ctx)
	}
	return daemon.InOrder(ctx, r.load, r.dial, r.listen, r.build, r.serve)
}
