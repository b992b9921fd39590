package redis

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

// eval runs a script of charges on a bucket and on an empty one, at an instant in µs.
func (b *bucket) eval(s *script, now uint64, arg []byte) (rueidis.RedisMessage, error) {
	return b.client.Do(context.Background(), b.client.B().Eval().Script(s.text).
		Numkeys(2).Key(b.key, b.key+"2").
		Arg(string(arg), strconv.FormatUint(now, 10)).Build()).ToMessage()
}

// set stores a value that expires far in the future.
func (b *bucket) set(value string) {
	set := b.client.B().Set().Key(b.key).Value("\x43\x3f\xf9\x73\xca\xfa\x80\x00" + value).Build()
	if err := b.client.Do(context.Background(), set).Error(); err != nil {
		b.errorf("%w", err)
	}
}

func value(format byte, time uint64, deficit uint32) string {
	v := append([]byte{format}, binary.BigEndian.AppendUint64(nil, time)[1:]...)
	return string(binary.BigEndian.AppendUint32(v, deficit))
}

// wantTakeAll takes two whole tokens of the bucket and of a full one, both of 10 tokens.
func (b *bucket) wantTakeAll(now uint64, deadline float64, want ...state) {
	m, err := b.layout(perSecond(10, 1))
	if err != nil {
		b.errorf("%w", err)
		return
	}
	arg := binary.BigEndian.AppendUint64(nil, math.Float64bits(deadline))
	for range 2 {
		arg = append(arg, m.header...)
		arg = binary.BigEndian.AppendUint32(arg, uint32(2*m.scale))
	}
	reply, err := b.eval(m.takeAll, now, arg)
	if want == nil {
		if t, e := reply.ToInt64(); err != nil || e != nil || uint64(t) != now {
			b.errorf("after the deadline: %d, %w, want the time", t, err)
		}
		return
	}
	text, _ := reply.ToString()
	got := make([]state, len(want))
	if t, ok := parseStates(text, got); err != nil || !ok || t != now ||
		fmt.Sprint(got) != fmt.Sprint(want) {
		b.errorf("takeall at noon%+d: %+v, %w, want %+v", int64(now-noon), got, err, want)
	}
}

func takeAllScript(s *simulator) error {
	b := s.bucket("takeall")
	other := s.bucket("takeall2")
	inf := math.Inf(1)
	b.set(value(22, noon, 8_000_000))
	b.wantTakeAll(noon+1, noon)
	full := state{noon, 0, noon}
	b.wantTakeAll(noon, noon, state{noon, 8_000_000, noon}, full) // the last two tokens
	const later = noon + 5
	b.wantTakeAll(later, inf, state{later, 9_999_995, later}, state{later, 1_999_995, later})
	if v, _ := b.value(); v != value(22, noon, 10_000_000) {
		b.errorf("the empty bucket has the value %q", v)
	}
	v, expiry := other.value()
	if v != value(22, noon, 2_000_000) || expiry != (noon+2_000_000)/1000+1 {
		b.errorf("the other bucket has the value %q until %d", v, expiry)
	}
	const back = noon - 1_000_001
	b.wantTakeAll(back, inf, state{back, 10_000_000, back}, state{back, 2_000_000, back})
	for x, deficit := range map[*bucket]uint32{b: 10_000_000, other: 2_000_000} {
		if v, _ := x.value(); v != value(22, back, deficit) {
			b.errorf("a refusal after the clock was set back left the value %q", v)
		}
	}
	b.set("no bucket")
	m, err := s.layout(perSecond(10, 1))
	if err != nil {
		return err
	}
	arg := make([]byte, 8, 100)
	binary.BigEndian.PutUint64(arg, math.Float64bits(inf))
	for range 2 {
		arg = append(append(arg, m.header...), 0, 0, 0, 1)
	}
	_, err = b.eval(m.takeAll, noon, arg)
	if err == nil || !strings.HasPrefix(err.Error(), "NOBUCKET") {
		b.errorf("a foreign value: %w", err)
	}
	return b.err
}

func giveBackScript(s *simulator) error {
	b := s.bucket("giveback")
	m, err := s.layout(perSecond(10, 1)) // a unit is a µs
	if err != nil {
		return err
	}
	for _, tt := range []struct {
		before, after string
		back          int64
	}{
		{value(22, noon, 5_000_000), value(22, noon, 2_000_000), 3_000_000},
		{value(22, noon+1, 5_000_000), value(22, noon+1, 2_000_001), 2_999_999},
		{value(22, noon+2_999_999, 5), value(22, noon+2_999_999, 4), 1},
		{value(22, noon+3_000_000, 5), value(22, noon+3_000_000, 5), 0},
		{value(22, noon+9_000_000, 5), value(22, noon+9_000_000, 5), 0},
		{value(22, noon, 2_000_000), value(22, noon, 0), 2_000_000}, // reset meanwhile
		{value(22, noon-1, 5_000_000), value(22, noon-1, 5_000_000), 0},
		{value(20, noon, 5_000_000), value(20, noon, 5_000_000), 0},
		{value(22, noon, 5_000_000) + "x", value(22, noon, 5_000_000) + "x", 0},
	} {
		b.set(tt.before)
		_, expiry := b.value()
		arg := m.appendGiveBack(m.appendGiveBack(nil, 3_000_000, noon), 1, noon) // one is full
		reply, err := b.eval(m.giveBack, noon, arg)
		if n, e := reply.ToInt64(); err != nil || e != nil || n != tt.back {
			b.errorf("%q: %d units, %w, want %d", tt.before, n, err, tt.back)
		}
		if v, e := b.value(); v != tt.after || e != expiry {
			b.errorf("%q became %q until %d, want %q until %d", tt.before, v, e, tt.after, expiry)
		}
	}
	return b.err
}
