package fuzz

import (
	"encoding/binary"
	"math"
	"math/bits"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// input is a string of bytes that is read as numbers, and as zeros after its end. So every input
// is a program, a small change of the input is a small change of the program, and random bytes
// are a random program.
type input []byte

func (in *input) byte() byte {
	if len(*in) == 0 {
		return 0
	}
	b := (*in)[0]
	*in = (*in)[1:]
	return b
}

// below returns a number below n, which is at most 256.
func (in *input) below(n int) int { return int(in.byte()) % n }

func (in *input) uint64() uint64 {
	var b [8]byte
	for i := range b {
		b[i] = in.byte()
	}
	return binary.LittleEndian.Uint64(b[:])
}

// upTo returns a number from 1 to max. All magnitudes are equally likely.
func (in *input) upTo(max uint64) uint64 {
	length := 1 + in.below(bits.Len64(max))
	return min(max, in.uint64()>>(64-length)|1<<(length-1))
}

// limit returns a limit in the whole range, or a limit of usual size.
func (in *input) limit() tb.Limit {
	if in.below(2) == 0 {
		return in.usualLimit()
	}
	capacity := in.upTo(tb.MaxCapacity)
	per := in.upTo(math.MaxInt64)
	return tb.Limit{
		Capacity: int(capacity),
		Tokens:   int64(in.upTo(per)),
		Per:      time.Duration(per),
	}
}

func (in *input) usualLimit() tb.Limit {
	return tb.Limit{
		Capacity: 1 + in.below(100),
		Tokens:   1 + int64(in.below(200)),
		Per:      [...]time.Duration{1e6, time.Second, time.Minute, 24 * time.Hour}[in.below(4)],
	}
}

// program returns a program on at most maxKeys keys in the table.
//
// A call that may lower a stamp makes the order of eviction inexact: reset, cancel, settle and
// setLimit. Half of the programs have such calls. In them the table has room for all keys, and no
// insert comes after such a call, because all keys are inserted first.
func (in *input) program(maxKeys int) program {
	p := program{
		limit:    in.limit(),
		maxKeys:  1 + in.below(maxKeys),
		overflow: tb.Overflow(in.below(2)),
	}
	keys := 1 + in.below(16)
	ops, shrinks := growing[:], in.below(2) == 0
	if shrinks {
		if in.below(2) == 0 {
			p.limit = in.usualLimit()
		}
		ops = shrinking[:]
		keys = 1 + keys%4
		p.maxKeys = keys + 1
		for i := range keys {
			n := [...]int{1, p.limit.Capacity}[in.below(2)]
			p.calls = append(p.calls, call{op: allowN, key: key(i), n: n})
		}
	}
	l := p.limit
	var now time.Duration
	var read, latest time.Time
	for len(*in) > 0 && len(p.calls) < maxCalls {
		c := in.call(ops, l, keys)
		holds := c.op == hold || c.refusal > 0
		if late := latest.Sub(read); !shrinks && holds && c.step < late {
			c.step = late // at a late reading a debt may be so deep that a hold cuts it
		}
		if read = read.Add(c.step); latest.Before(read) {
			latest = read
		}
		if shrinks { // the horizon of a limit
			if then := now + c.step; then.Abs() > century/2 || c.step.Abs() > century {
				c.step = 0
			}
			now += c.step
		}
		if c.op == setLimit {
			l = c.limit
		}
		p.calls = append(p.calls, c)
	}
	return p
}

// century is the time in which readings of a limiter whose limit changes are exact.
const century = 100 * 365 * 24 * time.Hour

// maxCalls is the largest number of calls of a program.
const maxCalls = 200

// growing are calls that never lower a stamp.
var (
	growing = [...]op{
		allowN, allowN, allowN, allowCost, allowAt, peek, takeAll,
		reserve, reserve, settle, wait, hold, keep,
	}
	shrinking = [...]op{
		reset, allowN, allowN, allowN, allowCost, allowAt, peek, takeAll,
		reserve, reserve, reserve, cancel, cancel, settle, settle, wait, setLimit, hold, keep,
	}
)

func key(i int) string { return string(rune('a' + i)) }

func (in *input) call(ops []op, l tb.Limit, keys int) call {
	c := call{
		key:  key(in.below(keys)),
		op:   ops[in.below(len(ops))],
		step: in.step(l),
		n:    1,
	}
	switch in.below(4) {
	case 1:
		c.n = in.below(16) - 1
	case 2:
		c.n = l.Capacity + 1 - in.below(4)
	case 3:
		c.n = int(uint64(l.Capacity) * uint64(in.byte()) / 255)
	}
	switch c.op {
	case allowCost, reserve:
		c.cost = in.cost(c.n, l.Capacity)
	case takeAll:
		c.cost = float64(c.n)
		c.other = key(in.below(keys))
		c.within = in.within(l)
		c.refusal = in.refusal(l)
	case wait:
		c.within = in.within(l)
		c.held = in.below(2)
	case cancel:
		c.held = in.below(4)
	case settle:
		c.held = in.below(4)
		c.cost = in.actual(c.n, l.Capacity)
		if len(ops) == len(growing) {
			c.cost = math.Abs(c.cost) + float64(l.Capacity)
		}
	case setLimit:
		c.limit = in.nextLimit(l)
	case hold:
		if c.within = in.within(l); in.below(4) == 0 {
			c.within = in.step(l)
		}
	case keep:
		c.cost = in.cost(1+in.below(4), l.Capacity)
		c.keep = in.cost(c.n, l.Capacity)
		c.refusal = in.refusal(l)
	}
	return c
}

// within returns how long a call may wait. Mostly it is near the time that refills a token or a
// bucket.
func (in *input) within(l tb.Limit) time.Duration {
	token := float64(l.Per) / float64(l.Tokens)
	d := token * float64(in.byte()) / 64
	switch in.below(4) {
	case 0:
		d *= float64(l.Capacity)
	case 1:
		return 0
	}
	return time.Duration(min(d, float64(time.Hour)))
}

// refusal returns how long a refusal holds a key. It may be negative, and centuries.
func (in *input) refusal(l tb.Limit) time.Duration {
	switch in.below(4) {
	case 0:
		return in.within(l)
	case 1:
		return in.step(l)
	}
	return 0
}

// actual returns an actual cost. It may be 0, and above the capacity.
func (in *input) actual(n, capacity int) float64 {
	switch in.below(8) {
	case 0:
		return 0
	case 1:
		return float64(capacity) * float64(in.byte()) / 32
	case 2:
		return in.cost(n, capacity) * math.Exp2(float64(in.below(64)))
	}
	return in.cost(n, capacity)
}

// nextLimit returns a limit that takes the place of l.
func (in *input) nextLimit(l tb.Limit) tb.Limit {
	next := in.limit()
	switch in.below(4) {
	case 0, 1: // another rate
		next.Capacity = l.Capacity
	case 2: // another capacity
		next.Tokens, next.Per = l.Tokens, l.Per
	}
	return next
}

// cost returns a cost near n tokens, or any other number.
func (in *input) cost(n, capacity int) float64 {
	switch in.below(8) {
	case 0:
		return float64(n) / 10
	case 1:
		return float64(n) / 4
	case 2:
		return float64(n) + float64(in.byte())/1e6
	case 3:
		return float64(in.uint64()) / math.MaxUint64 * float64(capacity)
	case 4:
		return math.Float64frombits(in.uint64())
	case 5:
		return float64(capacity) - float64(in.byte())/1e7
	}
	return float64(n)
}

// step returns how far the clock moves. Mostly it is 0, or near the time that refills a token or
// a bucket. It may be centuries, and it may be negative.
func (in *input) step(l tb.Limit) time.Duration {
	token := float64(l.Per) / float64(l.Tokens)
	var d float64
	mode := in.byte()
	switch mode % 8 {
	case 0, 1:
		return 0
	case 2, 3, 4:
		d = token * float64(in.byte()) / 128
	case 5:
		d = token * float64(l.Capacity) * float64(in.byte()) / 128
	case 6:
		d = float64(in.byte()) * float64(time.Second) / 2
	case 7:
		d = float64(in.upTo(math.MaxInt64))
	}
	if mode >= 216 { // one in six
		d = -d
	}
	return time.Duration(min(max(d, -1<<62), 1<<62)) + time.Duration(int(mode/8)%3-1)
}
