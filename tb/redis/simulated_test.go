package redis

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb"
)

// simulation is put before the text of a script. The script then runs at the time that its last
// argument gives, in µs, instead of the server's time, and keys expire by that time. A key expires
// as in Redis: in the first millisecond after its expiry. The text of the script is not changed.
const simulation = `
local now, real = tonumber(table.remove(ARGV)), redis
local ms = math.floor(now / 1000)
local redis = {error_reply = real.error_reply}
function redis.call(name, key, value, kind, expiry)
  if name == 'TIME' then
    return {string.format('%.0f', math.floor(now / 1e6)), string.format('%.0f', now % 1e6)}
  elseif name == 'GET' then
    local v = real.call('GET', key)
    if not v or ms > struct.unpack('>d', v) then return false end
    return string.sub(v, 9)
  end
  assert(name == 'SET')
  if kind == 'KEEPTTL' then
    return real.call('SET', key, string.sub(real.call('GET', key), 1, 8) .. value)
  end
  assert(expiry % 1 == 0)
  if kind == 'PX' then expiry = ms + expiry else assert(kind == 'PXAT') end
  return real.call('SET', key, struct.pack('>d', expiry) .. value)
end
`

// timeless is put before the simulation for a script that reads no clock.
const timeless = "ARGV[2] = 0"

// texts are the texts that the scripts are made of.
type texts struct{ clock, read, write, take, takeEach, takeAll, giveBack, narrow, wide string }

var shipped = texts{
	clockText, readText, writeText, takeText, takeEachText, takeAllText, giveBackText, narrowText,
	wideText,
}

// simulator runs scripts in simulated time.
type simulator struct {
	texts
	client       rueidis.Client
	narrow, wide *script

	narrowTakeEach, wideTakeEach                             *script
	narrowTakeAll, wideTakeAll, narrowGiveBack, wideGiveBack *script
}

func newSimulator(c rueidis.Client, x texts) *simulator {
	take := include(x.take, x.clock, x.read, x.write)
	takeEach := include(x.takeEach, x.clock, x.read, x.write)
	takeAll := include(x.takeAll, x.clock, x.read, x.write)
	return &simulator{
		texts:  x,
		client: c,
		narrow: newScript(simulation + x.narrow + take),
		wide:   newScript(simulation + x.wide + take),

		narrowTakeEach: newScript(simulation + x.narrow + takeEach),
		wideTakeEach:   newScript(simulation + x.wide + takeEach),
		narrowTakeAll:  newScript(simulation + x.narrow + takeAll),
		wideTakeAll:    newScript(simulation + x.wide + takeAll),
		narrowGiveBack: newScript(timeless + simulation + x.narrow + x.giveBack),
		wideGiveBack:   newScript(timeless + simulation + x.wide + x.giveBack),
	}
}

// layout returns the layout of a limit, with a script in simulated time.
func (s *simulator) layout(limit tb.Limit) (layout, error) {
	m, err := newLayout(limit)
	if m.script == narrow {
		m.script, m.takeEach = s.narrow, s.narrowTakeEach
		m.takeAll, m.giveBack = s.narrowTakeAll, s.narrowGiveBack
	} else {
		m.script, m.takeEach = s.wide, s.wideTakeEach
		m.takeAll, m.giveBack = s.wideTakeAll, s.wideGiveBack
	}
	return m, err
}

// step is one run of a script.
type step struct {
	now         uint64 // µs
	costs       []uint64
	deadline    uint64
	clientClock bool
}

func (s step) items() []item {
	all := make([]item, len(s.costs))
	for i, c := range s.costs {
		all[i] = item{c, s.deadline}
	}
	return all
}

// run runs the steps on a bucket, in one pipeline, and returns the replies.
func (s *simulator) run(m *layout, key string, steps []step) ([]rueidis.RedisMessage, error) {
	return s.pipeline(m.script, []string{key}, steps, func(st step) []byte {
		return m.argument(st.items())
	})
}

// pipeline runs a script for each step, and returns the replies.
func (s *simulator) pipeline(
	text *script, keys []string, steps []step, argument func(step) []byte,
) ([]rueidis.RedisMessage, error) {
	ctx := context.Background()
	load := s.client.B().ScriptLoad().Script(text.text).Build()
	if err := s.client.Do(ctx, load).Error(); err != nil {
		return nil, err
	}
	all := make(rueidis.Commands, len(steps))
	for i, st := range steps {
		now := strconv.FormatUint(st.now, 10)
		args := []string{string(argument(st))}
		if st.clientClock {
			args = append(args, now)
		}
		all[i] = s.client.B().Evalsha().Sha1(text.sha).Numkeys(int64(len(keys))).Key(keys...).
			Arg(append(args, now)...).Build()
	}
	replies := make([]rueidis.RedisMessage, len(steps))
	for i, r := range s.client.DoMulti(ctx, all...) {
		reply, err := r.ToMessage()
		if err != nil {
			return nil, fmt.Errorf("step %d: %w", i, err)
		}
		replies[i] = reply
	}
	return replies, nil
}

// states runs steps that must all be decided, and returns the states before the costs.
func (s *simulator) states(m *layout, key string, steps []step) ([]state, error) {
	replies, err := s.run(m, key, steps)
	if err != nil {
		return nil, err
	}
	all := make([]state, len(steps))
	for i, r := range replies {
		text, err := r.ToString()
		if err != nil {
			return nil, fmt.Errorf("step %d: %w", i, err)
		}
		var ok bool
		if all[i], ok = m.parse(text, steps[i].items()); !ok {
			return nil, fmt.Errorf("step %d: reply %q", i, text)
		}
	}
	return all, nil
}

// twins is states by takeeach.lua, which takes the costs of a step from two buckets.
func (s *simulator) twins(m *layout, key string, steps []step) ([]state, error) {
	replies, err := s.pipeline(m.takeEach, []string{key, key + " twin"}, steps,
		func(st step) []byte {
			items := st.items()
			return appendBucket(appendBucket(slices.Clone(m.header), items), items)
		})
	if err != nil {
		return nil, err
	}
	all := make([]state, len(steps))
	for i, r := range replies {
		var both [2]state
		text, err := r.ToString()
		if now, ok := parseStates(text, both[:]); err != nil || !ok || now != steps[i].now {
			return nil, fmt.Errorf("step %d: reply %q at %d, %w", i, text, now, err)
		}
		if both[0] != both[1] {
			return nil, fmt.Errorf("step %d: the buckets are %+v", i, both)
		}
		all[i] = both[0]
	}
	return all, nil
}

// flush removes all buckets.
func (s *simulator) flush(t testing.TB) {
	t.Helper()
	if err := s.client.Do(t.Context(), s.client.B().Flushall().Build()).Error(); err != nil {
		t.Fatal(err)
	}
}

func startSimulator(t testing.TB, x texts) *simulator {
	return newSimulator(dial(t, redistest.Start(t)), x)
}
