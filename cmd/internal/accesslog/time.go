package accesslog

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"time"
)

// The years that fit into nanoseconds since 1970 in any zone.
const (
	minYear = 1970
	maxYear = 2261
)

// timeParser parses times. It keeps the last date, because neighbouring lines nearly always
// have the same one, and a date is the slow part of a time. Of Common Log Format it keeps the last
// minute, too.
type timeParser struct {
	date     string // the last date, as logged
	midnight int64  // its start in UTC, in seconds since 1970

	last  [len("17/May/2015:10:05:03 +0000")]byte // the last time of clf, as logged
	start int64                                   // of its minute, in seconds since 1970
}

// clf parses the time of Common Log Format, "17/May/2015:10:05:03 +0000".
func (p *timeParser) clf(b []byte) (ns int64, ok bool) {
	if len(b) != len(p.last) || b[11] != ':' || b[20] != ' ' {
		return 0, false
	}
	second := parseDigits(b[18:20])
	if string(b[:18]) == string(p.last[:18]) && string(b[20:]) == string(p.last[20:]) {
		return (p.start + second) * int64(time.Second), second >= 0 && second <= 60
	}
	if string(b[:11]) != p.date && !p.setDate(b[:11], clfDate) {
		return 0, false
	}
	if ns, ok = p.combine(b[12:20], 0, b[21:]); ok {
		p.last, p.start = [len(p.last)]byte(b), ns/int64(time.Second)-second
	}
	return ns, ok
}

// clfMillis parses the time of HAProxy, "17/May/2015:10:05:03.123". It has no zone, and counts as
// UTC.
func (p *timeParser) clfMillis(b []byte) (ns int64, ok bool) {
	if len(b) != len("17/May/2015:10:05:03.123") || b[11] != ':' || b[20] != '.' ||
		countDigits(b[21:]) != 3 || string(b[:11]) != p.date && !p.setDate(b[:11], clfDate) {
		return 0, false
	}
	return p.combine(b[12:20], nanos(b[21:]), utc)
}

// dateAndTime parses "2015-05-17" and "10:05:03" in UTC, with an optional fraction of a second.
func (p *timeParser) dateAndTime(date, clock []byte) (ns int64, ok bool) {
	if len(date) != len("2015-05-17") || len(clock) < len("10:05:03") ||
		string(date) != p.date && !p.setDate(date, isoDate) {
		return 0, false
	}
	clock, fraction := clock[:8], clock[8:]
	if len(fraction) == 0 {
		return p.combine(clock, 0, utc)
	}
	if fraction[0] != '.' || countDigits(fraction[1:]) != len(fraction)-1 {
		return 0, false
	}
	return p.combine(clock, nanos(fraction[1:]), utc)
}

// ansic parses "Sun May 17 10:05:03 2015" in UTC. A day below 10 has a space in front.
func (p *timeParser) ansic(b []byte) (ns int64, ok bool) {
	if len(b) != len("Sun May 17 10:05:03 2015") || b[10] != ' ' || b[19] != ' ' {
		return 0, false
	}
	date := [...]byte{b[8], b[9], '/', b[4], b[5], b[6], '/', b[20], b[21], b[22], b[23]}
	if date[0] == ' ' {
		date[0] = '0'
	}
	if string(date[:]) != p.date && !p.setDate(date[:], clfDate) {
		return 0, false
	}
	return p.combine(b[11:19], 0, utc)
}

// slashed parses "2015/05/17" and "10:05:03" in UTC.
func (p *timeParser) slashed(date, clock []byte) (ns int64, ok bool) {
	if len(date) != len("2015/05/17") || len(clock) != len("10:05:03") {
		return 0, false
	}
	iso := [...]byte{date[0], date[1], date[2], date[3], '-', date[5], date[6], '-', date[8], date[9]}
	return p.dateAndTime(iso[:], clock)
}

var utc = []byte{'Z'}

// any parses a time in any of the usual notations. The position of the first separator decides
// which one it is. b must not be empty.
func (p *timeParser) any(b []byte) (ns int64, ok bool) {
	switch {
	case b[0] < '0' || b[0] > '9':
		return 0, false
	case len(b) > 4 && b[4] == '-':
		return p.rfc3339(b)
	case len(b) > 2 && b[2] == '/':
		return p.clf(b)
	}
	return epoch(b)
}

// rfc3339 parses "2015-05-17T10:05:03Z" with an optional fraction of a second and any zone.
// It also accepts a space instead of the T and a zone without a colon, as some loggers write
// them.
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
		n := countDigits(zone[1:])
		fraction, zone = nanos(zone[1:1+n]), zone[1+n:]
	}
	return p.combine(b[11:19], fraction, zone)
}

// combine adds the time of day and the zone to the last date. It refuses a time before 1970
// in UTC.
func (p *timeParser) combine(clock []byte, fraction int64, zone []byte) (ns int64, ok bool) {
	second, clockOK := timeOfDay(clock)
	offset, zoneOK := zoneOffset(zone)
	ns = (p.midnight+second-offset)*int64(time.Second) + fraction
	return ns, clockOK && zoneOK && ns >= 0
}

// setDate sets the last date to b. It changes nothing and returns false if there is no such
// day.
func (p *timeParser) setDate(b []byte, parse func([]byte) (y, m, d int)) bool {
	y, m, d := parse(b)
	t := time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC)
	if y < minYear || y > maxYear || t.Day() != d || int(t.Month()) != m {
		return false
	}
	p.date, p.midnight = string(b), t.Unix()
	return true
}

const months = "/Jan/Feb/Mar/Apr/May/Jun/Jul/Aug/Sep/Oct/Nov/Dec/"

// clfDate splits "17/May/2015". For another text it returns negative numbers, which setDate
// refuses.
func clfDate(b []byte) (y, m, d int) {
	i := strings.Index(months, string(b[2:7]))
	if i%4 != 0 { // -1 included
		return -1, -1, -1
	}
	return int(parseDigits(b[7:])), i/4 + 1, int(parseDigits(b[:2]))
}

// isoDate splits "2015-05-17" in the same way.
func isoDate(b []byte) (y, m, d int) {
	if b[4] != '-' || b[7] != '-' {
		return -1, -1, -1
	}
	return int(parseDigits(b[:4])), int(parseDigits(b[5:7])), int(parseDigits(b[8:]))
}

// timeOfDay parses "10:05:03" into seconds. A leap second counts as the second after it.
func timeOfDay(b []byte) (second int64, ok bool) {
	h, m, s := parseDigits(b[:2]), parseDigits(b[3:5]), parseDigits(b[6:])
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
	h, m := parseDigits(b[1:3]), parseDigits(minutes)
	if len(minutes) != 2 || h < 0 || h >= 24 || m < 0 || m >= 60 {
		return 0, false
	}
	seconds = h*3600 + m*60
	if b[0] == '-' {
		seconds = -seconds
	}
	return seconds, true
}

// epoch parses a number since 1970, such as "1431857103.123" or "1431857103123". Its size
// decides the unit: seconds below 10¹¹ (the year 5138), milliseconds from there (1973),
// microseconds from 10¹⁴ and nanoseconds from 10¹⁷. The digits are not read as a float64,
// which resolves only a quarter of a microsecond today.
func epoch(b []byte) (ns int64, ok bool) {
	whole := countDigits(b)
	switch {
	case whole == 0 || whole > 19:
		return 0, false
	case whole < len(b) && (b[whole] != '.' || countDigits(b[whole+1:]) != len(b)-whole-1):
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

// epochFloat parses a number with an exponent, such as 1.4318571e+09, as some encoders write
// it.
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

// nanos reads the digits after a decimal point as nanoseconds. It drops finer digits.
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

// parseDigits parses at most 18 decimal digits. No digits are 0. It returns -1 for any other
// text.
func parseDigits(b []byte) int64 {
	n := int64(0)
	for _, c := range b {
		if c < '0' || c > '9' {
			return -1
		}
		n = n*10 + int64(c-'0')
	}
	return n
}

// countDigits returns how many decimal digits b begins with.
func countDigits(b []byte) int {
	for i, c := range b {
		if c < '0' || c > '9' {
			return i
		}
	}
	return len(b)
}
