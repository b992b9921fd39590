package redis

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb"
)

// simulation is put before the text of the script. The script then runs at the time that its last
// argument gives, in µs, instead of the server's time, and keys expire by that time. A key expires
// as in Redis: in the first millisecond after its expiry. The text of the script is not changed.
const simulation = `
local now, real = tonumber(table.remove(ARGV)), redis
local ms = math.floor(now / 1000)
local redis = {}
function redis.pcall(name, key, value, kind, expiry)
  if name == 'SET' then
    assert(kind == 'PXAT' and expiry % 1 == 0)
    return real.pcall('SET', key, struct.pack('>d', expiry) .. value)
  end
  if name == 'DEL' then return real.pcall('DEL', key) end
  local v = real.pcall('GET', key)
  if type(v) == 'table' then return v end
  local expiry = v and struct.unpack('>d', v)
  local gone = not v or ms > expiry
  if name == 'PTTL' then return gone and -2 or expiry - ms end
  assert(name == 'GET')
  return not gone and string.sub(v, 9)
end
function redis.call(name)
  assert(name == 'TIME')
  return {string.format('%.0f', math.floor(now / 1e6)), string.format('%.0f', now % 1e6)}
end
`

// simulator runs the script in simulated time.
type simulator struct {
	client rueidis.Client
	script *script
	isLive bool // it runs in the time of the server instead
}

func newSimulator(c rueidis.Client, text string) *simulator {
	return &simulator{client: c, script: newScript(simulation + text)}
}

func startSimulator(t testing.TB, text string) *simulator {
	return newSimulator(dial(t, redistest.Start(t)), text)
}

// timed is a client whose scripts run at the time of a clock.
type timed struct {
	rueidis.Client
	now func() time.Time
}

func (c *timed) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	words := cmd.Commands()
	if !strings.HasPrefix(words[0], "EVAL") {
		return c.Client.Do(ctx, cmd)
	}
	now := strconv.FormatInt(c.now().UnixMicro(), 10)
	words = append(slices.Clone(words), now)
	return c.Client.Do(ctx, c.B().Arbitrary(words...).Build())
}

// newLimiter returns a limiter at the time of a clock.
func (s *simulator) newLimiter(
	now func() time.Time, limit tb.Limit, opts ...Option,
) (*Limiter, error) {
	opts = append([]Option{WithTimeout(patient)}, opts...)
	l, err := New(&timed{s.client, now}, limit, opts...)
	if err == nil {
		l.script = s.script
	}
	return l, err
}

// run runs the script on buckets at an instant. Each group of them pays as a whole or not.
func (s *simulator) run(now uint64, group int, parts ...part) (reply, error) {
	r, err := s.runEach([]command{{now: now, group: group, parts: parts}})
	if err != nil {
		return reply{}, err
	}
	return r[0], nil
}

// command is a run of the script at an instant.
type command struct {
	now   uint64 // µs
	group int    // the size of the groups of parts that are granted all or none; 0 is 1
	parts []part

	deadline uint64 // 0 for none
}

func (m *layout) part(name string, items ...item) part {
	return part{layout: m, name: name, items: items}
}

func (c *command) argument() string {
	var b []byte
	for i, p := range c.parts {
		header := p.layout.header
		if c.group > 1 && (i+1)%c.group > 0 {
			header[0] += joined
		}
		b = append(append(b, header[:]...), byte(len(p.items)))
		for i := range p.items {
			b = appendItem(b, &p.items[i], cmp.Or(c.deadline, noDeadline))
		}
	}
	return string(b)
}

// runEach runs the script several times, in one pipeline.
func (s *simulator) runEach(commands []command) ([]reply, error) {
	ctx := context.Background()
	load := s.client.B().ScriptLoad().Script(s.script.text).Build()
	if err := s.client.Do(ctx, load).Error(); err != nil {
		return nil, err
	}
	all := make(rueidis.Commands, len(commands))
	for i, c := range commands {
		var names []string
		for _, p := range c.parts {
			names = append(names, p.name)
		}
		args := []string{c.argument(), strconv.FormatUint(c.now, 10)}
		if s.isLive {
			args = args[:1]
		}
		all[i] = s.client.B().Evalsha().Sha1(s.script.sha).Numkeys(int64(len(names))).Key(names...).
			Arg(args...).Build()
	}
	replies := make([]reply, len(commands))
	for i, r := range s.client.DoMulti(ctx, all...) {
		text, err := r.ToString()
		if err != nil {
			return nil, fmt.Errorf("command %d: %w", i, err)
		}
		var failure *Error
		if replies[i], failure = parse(text, len(commands[i].parts)); failure != nil {
			return nil, fmt.Errorf("command %d: %w", i, failure)
		}
	}
	return replies, nil
}

func (s *simulator) flush(t testing.TB) {
	t.Helper()
	if err := s.client.Do(t.Context(), s.client.B().Flushall().Build()).Error(); err != nil {
		t.Fatal(err)
	}
}

func perSecond(capacity int, tokens int64) tb.Limit {
	return tb.Limit{Capacity: capacity, Tokens: tokens, Per: time.Second}
}

// layoutOf returns the layout of a limit that is in range.
func layoutOf(limit tb.Limit) *layout {
	m, err := newLayout(limit, 0)
	if err != nil {
		panic(err)
	}
	return m
}

// noon is an instant in µs that is a whole second.
const noon = 1_750_000_000_000_000

// bucket is a bucket in simulated time. Its first error stays.
type bucket struct {
	*simulator
	key string
	err error
}

func (s *simulator) bucket(name string) *bucket {
	b := &bucket{simulator: s, key: name}
	b.fill()
	return b
}

// fill makes the bucket full, by removing its key.
func (b *bucket) fill() {
	del := b.client.B().Del().Key(b.key).Build()
	if err := b.client.Do(context.Background(), del).Error(); err != nil {
		b.errorf("%w", err)
	}
}

func (b *bucket) errorf(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf(format, args...)
	}
}

// apply makes an item happen at an instant in µs, and returns its result and the state before.
func (b *bucket) apply(limit tb.Limit, now uint64, it item) (effect, state) {
	m := layoutOf(limit)
	r, err := b.run(now, 1, m.part(b.key, it))
	if err != nil {
		b.errorf("%w", err)
		return effect{}, state{}
	}
	found, failure := r.bucket(0)
	if failure != nil {
		b.errorf("%w", failure)
	}
	before := m.found(found, r.now)
	after := before
	return m.apply(&after, &it), before
}

// take takes whole tokens at an instant in µs, and returns the decision and the state before.
func (b *bucket) take(limit tb.Limit, now uint64, tokens int) (tb.Decision, state) {
	e, before := b.apply(limit, now, item{units: layoutOf(limit).unitsOf(float64(tokens))})
	return e.Decision, before
}

// want takes tokens, and compares the decision.
func (b *bucket) want(limit tb.Limit, now uint64, tokens int, want tb.Decision) {
	if got, _ := b.take(limit, now, tokens); got != want {
		b.errorf("%d tokens of %+v at noon%+d µs: %+v, want %+v",
			tokens, limit, int64(now-noon), got, want)
	}
}

// value returns the value of the key without the expiry before it, and the expiry in ms.
func (b *bucket) value() (value string, expiry uint64) {
	v, err := b.client.Do(context.Background(), b.client.B().Get().Key(b.key).Build()).ToString()
	if rueidis.IsRedisNil(err) {
		return "", 0
	}
	if err != nil || len(v) < 8 {
		b.errorf("the value is %q, %v", v, err)
		return "", 0
	}
	return v[8:], uint64(math.Float64frombits(binary.BigEndian.Uint64([]byte(v))))
}

func granted(remaining int) tb.Decision { return tb.Decision{Allowed: true, Remaining: remaining} }

func refused(retry time.Duration, remaining int) tb.Decision {
	return tb.Decision{RetryAfter: retry, Remaining: remaining}
}
