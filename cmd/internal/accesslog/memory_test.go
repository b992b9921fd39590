package accesslog

import (
	"runtime"
	"strings"
	"testing"
)

// Lines that ask for memory, with parts that a parser might copy, convert, decode or collect.
var hostileShapes = []struct{ name, begin, repeat, end string }{
	{"long path", `1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET /`, "a", ` HTTP/1.1" 200 1`},
	{"backslashes", `1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET /`, `\`, ` HTTP/1.1" 200 1`},
	{"many clients", `1.2.3.4`, ", 10.0.0.1", ` - - [17/May/2015:10:05:03 +0000] "-" 200 1`},
	{"long client like an address", ``, "1", ` 1 - - [17/May/2015:10:05:03 +0000] "-" 200 1`},
	{"many times", ``, `[17/May/2015:10:05:03 +0000] `, `"`},
	{"long epoch", `{"ts":1`, "0", "}"},
	{"long exponent", `{"ts":1e`, "0", "9}"},
	{"long time of day", `{"ts":"2015-05-17T10:05:03.`, "1", `"}`},
	{"one escape", `{"ts":1,"user":"\n`, "a", `"}`},
	{"surrogates", `{"ts":1,"user":"`, `\ud800`, `"}`},
	{"escape and no UTF-8", `{"ts":1,"user":"\n`, "\xff", `"}`},
	{"one member again and again", `{"ts":1`, `,"user":"\n"`, `}`},
	{"deep objects", `{"ts":1,"request":`, `{"headers":`, ""},
	{"addresses with escapes", `{"ts":1,"ip":["1.2.3.4`, `","\n`, `"]}`},
	{"many timers", `192.0.2.7:1 [17/May/2015:10:05:03.655] f b/s `, "1/", ` 200 1 "-"`},
	{"dashes", `http 2015-05-17T10:05:03Z a 192.0.2.7:1 - 1 1 1 200 - 1 1 "`, `- `, `"`},
	{"many quoted words", `[2015-05-17T10:05:03Z] "GET / HTTP/2" 200 - 0 1 2 3 "a"`, ` "b"`, ``},
	{"many pairs", `ts=1`, ` user="\n"`, ``},
	{"long directive", `#`, `a`, `: x`},
	{"long structured data", `<1>1 2015-05-17T10:05:03Z h a p m [a b="`, `\"`, `"] ts=1`},
	{"escaped line", `{"stream":"stdout","log":"`, `\n`, `"}`},
	{"escaped object in a line", `{"log":"{\"ts\":1,\"ip\":\"`, `\\n`, `\"}"}`},
}

// Whatever is in a line, parsing it takes no more memory than in proportion to its length.
func TestHostileLinesCostNoMoreThanTheirLength(t *testing.T) {
	const (
		length    = MaxLine / 4
		runs      = 20
		mostBytes = 20 // for each byte of the line: decoding makes three of one that is not UTF-8
	)
	p := newParser()
	for _, shape := range hostileShapes {
		n := (length - len(shape.begin) - len(shape.end)) / len(shape.repeat)
		line := []byte(shape.begin + strings.Repeat(shape.repeat, n) + shape.end)
		var rec Record
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range runs {
			_, _ = p.parse(line, &rec) // some are malformed: that must cost no more
		}
		runtime.ReadMemStats(&after)
		perByte := float64(after.TotalAlloc-before.TotalAlloc) / float64(runs*len(line))
		if perByte > mostBytes {
			t.Errorf("%s: %.1f bytes a byte, want at most %d", shape.name, perByte, mostBytes)
		}
	}
}
