package accesslog

import (
	"bytes"
	"math"
	"strconv"
	"time"
)

// The years that a time in nanoseconds since 1970 can hold, whatever its zone.
const (
	minYear = 1970
	maxYear = 2261
)

// timeParser parses times. Neighbouring lines nearly always share their date, and
// turning a date into days is the slow part of a time, so it keeps the last one.
type timeParser struct {
	date     string // as written in the log
	midnight int64  // when it began in UTC, in seconds since 1970
}

// clf parses the time of Common Log Format, "17/May/2015:10:05:03 +0000".
func (p *timeParser) clf(b []byte) (ns int64, ok bool) {
	if len(b) != len("17/May/2015:10:05:03 +0000") || b[11] != ':' || b[20] != ' ' {
		return 0, false
	}
	if string(b[:11]) != p.date && !p.setDate(b[:11], clfDate) {
		return 0, false
	}
	return p.combine(b[12:20], 0, b[21:])
}

// rfc3339 parses "2015-05-17T10:05:03Z" with an optional fraction of a second and
// any zone. A space for the T and a zone without colon, as some loggers write them,
// are fine too.
func (p *timeParser) rfc3339(b []byte) (ns int64, ok bool) {
	if len(b) < len("2015-05-17T10:05:03Z") || b[10] != 'T' && b[10] != 't' && b[10] != ' ' {
		return 0, false
	}
	if string(b[:10]) != p.date && !p.setDate(b[:10], isoDate) {
		return 0, false
	}
	var fraction int64
	zone := b[19:]
	if zone[0] == '.' {
		n := digits(zone[1:])
		fraction, zone = nanos(zone[1:1+n]), zone[1+n:]
	}
	return p.combine(b[11:19], fraction, zone)
}

// combine adds the time of day and the zone to the current date. What comes out before
// 1970 in UTC is no time.
func (p *timeParser) combine(clock []byte, fraction int64, zone []byte) (ns int64, ok bool) {
	second, clockOK := timeOfDay(clock)
	offset, zoneOK := zoneOffset(zone)
	ns = (p.midnight+second-offset)*int64(time.Second) + fraction
	return ns, clockOK && zoneOK && ns >= 0
}

// setDate makes b the current date. It returns false, changing nothing, if there is
// no such day.
func (p *timeParser) setDate(b []byte, parse func([]byte) (y, m, d int)) bool {
	y, m, d := parse(b)
	t := time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC)
	if y < minYear || y > maxYear || t.Day() != d || int(t.Month()) != m {
		return false
	}
	p.date, p.midnight = string(b), t.Unix()
	return true
}

// clfDate splits "17/May/2015". What is no date gives a negative number or the month 13,
// which setDate refuses.
func clfDate(b []byte) (y, m, d int) {
	const months = "JanFebMarAprMayJunJulAugSepOctNovDec"
	if b[2] != '/' || b[6] != '/' {
		return -1, -1, -1
	}
	for m = 1; m <= 12; m++ {
		if string(b[3:6]) == months[3*m-3:3*m] {
			break
		}
	}
	return int(number(b[7:])), m, int(number(b[:2]))
}

// isoDate splits "2015-05-17" likewise.
func isoDate(b []byte) (y, m, d int) {
	if b[4] != '-' || b[7] != '-' {
		return -1, -1, -1
	}
	return int(number(b[:4])), int(number(b[5:7])), int(number(b[8:]))
}

// timeOfDay parses "10:05:03" into seconds. A leap second is the one after it.
func timeOfDay(b []byte) (second int64, ok bool) {
	h, m, s := number(b[:2]), number(b[3:5]), number(b[6:])
	ok = b[2] == ':' && b[5] == ':' &&
		h >= 0 && h < 24 && m >= 0 && m < 60 && s >= 0 && s <= 60
	return h*3600 + m*60 + s, ok
}

// zoneOffset parses "+0200", "+02:00" or "Z" into seconds east of UTC.
func zoneOffset(b []byte) (seconds int64, ok bool) {
	if len(b) == 1 && (b[0] == 'Z' || b[0] == 'z') {
		return 0, true
	}
	if len(b) < 5 || b[0] != '+' && b[0] != '-' {
		return 0, false
	}
	minutes := b[3:]
	if minutes[0] == ':' {
		minutes = minutes[1:]
	}
	h, m := number(b[1:3]), number(minutes)
	if len(minutes) != 2 || h < 0 || h >= 24 || m < 0 || m >= 60 {
		return 0, false
	}
	seconds = h*3600 + m*60
	if b[0] == '-' {
		seconds = -seconds
	}
	return seconds, true
}

// epoch parses a number since 1970, as "1431857103.123" or "1431857103123". Its size tells
// its unit: below 10¹¹ it is seconds (that is the year 5138), from there milliseconds
// (1973), and a thousand times that microseconds, and again nanoseconds. The digits are
// read as such, for a float64 would keep but a quarter of a microsecond of today's time.
func epoch(b []byte) (ns int64, ok bool) {
	whole := digits(b)
	switch {
	case whole == 0 || whole > 19:
		return 0, false
	case whole < len(b) && (b[whole] != '.' || digits(b[whole+1:]) != len(b)-whole-1):
		return epochFloat(b)
	}
	n, err := strconv.ParseInt(string(b[:whole]), 10, 64)
	if err != nil {
		return 0, false
	}
	unit := int64(time.Second)
	for limit := int64(1e11); unit > 1 && n >= limit; limit *= 1000 {
		unit /= 1000
	}
	if n >= math.MaxInt64/unit {
		return 0, false
	}
	ns = n * unit
	if whole < len(b) {
		ns += nanos(b[whole+1:]) / (int64(time.Second) / unit)
	}
	return ns, true
}

// epochFloat parses what some encoders write instead, such as 1.4318571e+09, to the
// precision that it has.
func epochFloat(b []byte) (ns int64, ok bool) {
	if !bytes.ContainsAny(b, "eE") {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil || f < 0 || f > 1e18 {
		return 0, false
	}
	return epoch(strconv.AppendFloat(nil, f, 'f', -1, 64))
}

// nanos reads the digits behind a decimal point as nanoseconds, dropping what is
// finer.
func nanos(b []byte) int64 {
	var ns int64
	for i := range 9 {
		ns *= 10
		if i < len(b) {
			ns += int64(b[i] - '0')
		}
	}
	return ns
}

// number parses decimal digits, at most 18 of them, or returns -1 if there is anything
// else. No digits are 0.
func number(b []byte) int64 {
	n := int64(0)
	for _, c := range b {
		if c < '0' || c > '9' {
			return -1
		}
		n = n*10 + int64(c-'0')
	}
	return n
}

// digits returns how many decimal digits b begins with.
func digits(b []byte) int {
	for i, c := range b {
		if c < '0' || c > '9' {
			return i
		}
	}
	return len(b)
}
