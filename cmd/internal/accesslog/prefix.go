package accesslog

import (
	"bytes"
	"fmt"

	"github.com/seed-181794aa/ratelimit/internal/clientaddr"
)

// newPrefixes returns the envelopes of programs that print lines of logs after a text of their own:
//
//	web-1  | line                          docker compose logs
//	[pod/web-5d4f/nginx] line              kubectl logs --prefix
//	frontend.0 nginx: line                 Upsun, kail
//	17:line, access.log:17:line            grep -n, and without the number grep
//	2015-05-17 10:05:03,123 line           a time of a logger, also of RFC 3164 or since 1970
//	web-5d4f nginx line                    stern
//	stream line                            aws logs tail, after the time
//	{app="web"} line                       logcli, after the time
//	1431857103500	2015-05-17T10:05:03.5Z	line   the text that Grafana downloads
//
// A time as in RFC 3339 may be before or behind each of them. A line without such a prefix may look
// like one with it, so the client has to be an address after a prefix, and not without it.
func newPrefixes() (all []envelope) {
	for i, cut := range []func(line []byte) (rest []byte){
		cutPipe, cutBrackets, cutLabels, cutDownload, cutLabel, cutNumber, cutFileAndNumber, cutFile,
		cutLoggerTime, cutNames(2), cutNames(1),
	} {
		open := func(line []byte) (message, time []byte, ok bool) {
			if before, rest, ok := cutTime(line); ok {
				time, line = before, rest
			}
			line = cut(line)
			if behind, rest, ok := cutTime(line); ok {
				time, line = behind, rest
			}
			return line, time, len(line) > 0
		}
		all = append(all, envelope{name: fmt.Sprint("prefix ", i), open: open, isPrefix: true})
	}
	return all
}

// Each of these functions returns what is behind a prefix, or nothing if a line does not have it.

func cutPipe(line []byte) []byte {
	name, rest := cutWord(line)
	rest = bytes.TrimLeft(rest, " ")
	if len(name) == 0 || len(rest) == 0 || rest[0] != '|' {
		return nil
	}
	return bytes.TrimPrefix(rest[len("|"):], space)
}

func cutBrackets(line []byte) []byte {
	if _, rest, ok := bytes.Cut(line, []byte("] ")); ok && line[0] == '[' {
		return rest
	}
	return nil
}

func cutLabels(line []byte) []byte {
	if _, rest, ok := bytes.Cut(line, []byte("} ")); ok && line[0] == '{' {
		return bytes.TrimLeft(rest, " ")
	}
	return nil
}

func cutDownload(line []byte) []byte {
	time, rest, _ := bytes.Cut(line, []byte{'\t'})
	if iso, rest, ok := bytes.Cut(rest, []byte{'\t'}); ok && countDigits(time) == len(time) &&
		isISOTime(iso) {
		return rest
	}
	return nil
}

func cutLabel(line []byte) []byte {
	for range 2 {
		word, rest, ok := bytes.Cut(line, space)
		if !ok {
			return nil
		}
		if bytes.HasSuffix(word, []byte{':'}) {
			return rest
		}
		line = rest
	}
	return nil
}

func cutNumber(line []byte) []byte {
	if n := countDigits(line); n > 0 && n < len(line) && line[n] == ':' {
		return line[n+1:]
	}
	return nil
}

func cutFile(line []byte) []byte {
	name, rest, ok := bytes.Cut(line, []byte{':'})
	if !ok || len(name) == countDigits(name) || bytes.IndexByte(name, ' ') >= 0 || isAddr(name) {
		return nil
	}
	return rest
}

func cutFileAndNumber(line []byte) []byte { return cutNumber(cutFile(line)) }

func cutLoggerTime(line []byte) []byte {
	if isRFC3164Time(line) {
		return line[len("May 17 10:05:03 "):]
	}
	word, rest, _ := bytes.Cut(line, space)
	whole := countDigits(word)
	if whole >= len("1431857103") && (whole == len(word) || word[whole] == '.') {
		return rest
	}
	if !isISODate(word) {
		return nil
	}
	if len(word) == len("2015-05-17") {
		word, rest, _ = bytes.Cut(rest, space)
		if len(word) < len("10:05:03") || word[2] != ':' {
			return nil
		}
	}
	zone, after, _ := bytes.Cut(rest, space)
	if len(zone) == len("+0000") && bytes.ContainsAny(zone[:1], "+-") {
		return after
	}
	return rest
}

// cutNames returns a function that cuts off some names. An address is the client or a proxy, and a
// dash the identity or the user of a client.
func cutNames(n int) func(line []byte) []byte {
	return func(line []byte) []byte {
		for range n {
			name, rest, _ := bytes.Cut(line, space)
			if !isName(name) || string(name) == "-" || isAddr(name) {
				return nil
			}
			line = rest
		}
		return line
	}
}

// isName reports whether b has only the bytes of addresses and names of hosts, and is not empty.
func isName(b []byte) bool {
	for _, c := range b {
		if !nameBytes[c] {
			return false
		}
	}
	return len(b) > 0
}

// nameBytes has the bytes of names, of addresses with port, zone and brackets, and of networks.
var nameBytes = func() (is [256]bool) {
	for c := range is {
		is[c] = '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
	}
	for _, c := range []byte(".-_:[]%/") {
		is[c] = true
	}
	return is
}()

// isClient reports whether b may be a client or a list of X-Forwarded-For.
func isClient(b []byte) bool {
	for _, c := range b {
		if !nameBytes[c] && c != ',' && c != ' ' {
			return false
		}
	}
	return true
}

// hasAddress reports whether b is an address or a list of X-Forwarded-For, whose last entry is one.
// The first one must be an address, too, because it may be behind a prefix.
func hasAddress(b []byte) bool {
	first, last := b, b
	if isList(b) {
		first, _, _ = bytes.Cut(b, []byte{','})
		last = bytes.TrimSpace(b[bytes.LastIndexByte(b, ',')+1:])
	}
	return isUsualAddr(first) && isUsualAddr(last)
}

// isUsualAddr reports whether b is an address of a kind that is in use. 17:2001:db8::7 is not: it
// is the number of a line before another address.
func isUsualAddr(b []byte) bool {
	a, ok := clientaddr.Parse(string(b))
	if !ok || a.Is4() {
		return ok
	}
	first := a.As16()[0]
	return first>>5 == 1 || first >= 0xfc || a.IsLoopback() || a.IsUnspecified() ||
		clientaddr.Embedded(a) != a
}
