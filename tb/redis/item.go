package redis

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/unit"
)

type kind byte

const (
	kindTake     kind = iota // takes units, or none
	kindLook                 // takes nothing, but converts a bucket that lacks units
	kindReserve              // takes units, and may put the bucket in debt
	kindGiveBack             // gives back units
	kindCharge               // takes units, or as many as a debt of one capacity allows
	kindUndo                 // gives back units that were taken before
	kindReset                // makes the bucket full
	kindKeep                 // takes units if others are left, and a refusal may hold the bucket
	kindHold                 // holds the bucket
)

const (
	// noDeadline is the deadline of an item that is never late.
	noDeadline = 1<<56 - 1

	// joined is added to the first byte of a limit in the argument of the script if the bucket and the
	// next one both pay or none.
	joined = 8
)

type item struct {
	kind  kind
	units uint64

	// Of a reservation: the most units of debt, and the longest wait, in whole µs.
	debt   uint64
	within time.Duration

	// Of an undo: the bucket before the grant. It has no effect if the bucket has been converted to
	// another limit since.
	before state

	// Of kindKeep: the units that are left, and for how many µs a refusal holds, 0 if it does not. Of
	// kindHold: until which local time in µs it holds, and how long that is when it is sent.
	keep, hold uint64
	until      int64
}

func (it *item) needs() uint64 { return it.units + it.keep }

func undoOf(before state, units uint64) item {
	return item{kind: kindUndo, units: units, before: before}
}

// settlement returns the item that replaces an estimate by the actual cost. Both may be above the
// capacity.
func (m *layout) settlement(estimate, actual float64) item {
	expected, used := unit.Settled(estimate, m.scale), unit.Settled(actual, m.scale)
	if used > expected {
		return item{kind: kindCharge, units: used - expected}
	}
	return item{kind: kindGiveBack, units: expected - used}
}

// corrects reports whether the item is right at any time, so that it has no deadline.
func (it *item) corrects() bool { return it.kind == kindCharge || it.givesBack() }

// givesBack reports whether the bucket may have more afterwards.
func (it *item) givesBack() bool {
	return it.kind == kindGiveBack || it.kind == kindUndo || it.kind == kindReset
}

// appendItem appends the item as the script reads it. deadline is in µs of the server's clock.
func appendItem(b []byte, it *item, deadline uint64) []byte {
	if it.corrects() {
		deadline = noDeadline
	}
	b = append(b, byte(it.kind))
	b = appendUint(b, deadline, 7)
	b = appendUint(b, min(it.units, 1<<32-1), 4)
	switch it.kind {
	case kindReserve:
		b = appendUint(b, it.debt, 4)
		b = appendUint(b, uint64(it.within/time.Microsecond), 7)
	case kindUndo:
		b = appendUint(b, it.before.change, 7)
		b = appendUint(b, it.before.time, 7)
		b = appendUint(b, it.before.deficit, 4)
		b = appendUint(b, it.before.was, 7)
		b = appendUint(b, it.before.lacked, 4)
	case kindKeep, kindHold:
		b = appendUint(b, it.keep, 4)
		b = appendUint(b, it.hold, 7)
	}
	return b
}

func uint56(b []byte) uint64 {
	return uint64(binary.BigEndian.Uint32(b))<<24 | uint64(binary.BigEndian.Uint32(b[3:]))&(1<<24-1)
}

// state is a bucket at the time of a decision. Both times are in µs since 1970.
type state struct {
	time    uint64 // the bucket's own time, at most now unless a clock was set back
	deficit uint64 // in units, above the capacity in debt
	now     uint64 // the clock that decided
	change  uint64 // the number of the last conversion to another limit or hold, or 0
	held    bool   // until its own time, at which it lacks the deficit

	// The bucket as it is stored: its own time, and the deficit then.
	was, lacked uint64
}

const bucketBytes = 19

type reply struct {
	now     uint64 // by the server's clock
	buckets string // bucketBytes each
	failure *Error // why some could not be written, or nil
}

func parse(text string, n int) (reply, *Error) {
	end := 7 + bucketBytes*n
	if len(text) < end {
		return reply{}, &Error{CauseRejected, errors.New("the reply has another form")}
	}
	r := reply{now: uint56([]byte(text[:7])), buckets: text[7:end]}
	if text = text[end:]; text != "" {
		r.failure = replyError(text, errors.New(text))
	}
	return r, nil
}

// The states of a bucket of which the items have changed nothing: see buckets.lua.
const (
	unread = 253 + iota
	unwritten
	foreign
)

// bucket returns bucket i before its items, and why they have changed nothing, or nil.
func (r *reply) bucket(i int) ([]byte, *Error) {
	b := []byte(r.buckets[bucketBytes*i : bucketBytes*(i+1)])
	switch b[0] {
	case foreign:
		return b, &Error{CauseForeign, errors.New("the value is not a bucket of tb/redis")}
	case unread, unwritten:
		return b, r.failure
	}
	return b, nil
}
