package accesslog

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func line(client string) string {
	return client + ` - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1`
}

// clients returns the peers of the requests.
func clients(requests []request) (ips []string) {
	for _, r := range requests {
		ips = append(ips, r.ip)
	}
	return ips
}

func TestMalformedLinesAreNumbered(t *testing.T) {
	log := line("a") + "\r\n\r\n\nbroken\n" + line("b") + "\n\xff\n" + line("c")
	got, bad, _ := read(t, strings.NewReader(log), Schema{})
	if fmt.Sprint(clients(got)) != "[a b c]" || len(bad) != 2 {
		t.Fatalf("got %v, malformed %v", got, bad)
	}
	if bad[0].Line != 4 || bad[1].Line != 6 {
		t.Errorf("malformed lines %d and %d, want 4 and 6", bad[0].Line, bad[1].Line)
	}
	if want := `a.log:4: ` + errOrigin.Error() + `: "broken"`; bad[0].Error() != want {
		t.Errorf("got %q, want %q", bad[0], want)
	}
}

func TestLongLines(t *testing.T) {
	long := func(n int) string { // a valid line of n bytes
		begin := line("long") + ` "-" "`
		return begin + strings.Repeat("x", n-len(begin)-1) + `"`
	}
	for _, tt := range []struct {
		name  string
		bytes int
		end   string
		ok    bool
	}{
		{"128 KiB", MaxLine - 1, "\n", true},
		{"128 KiB and CRLF", MaxLine - 2, "\r\n", true},
		{"128 KiB at the end", MaxLine - 1, "", true},
		{"a byte more", MaxLine, "\n", false},
		{"far more", 5*MaxLine + 7, "\n", false},
		{"far more at the end", 5 * MaxLine, "", false},
	} {
		log := line("a") + "\n" + long(tt.bytes) + tt.end
		want := "[a"
		if tt.ok {
			want += " long"
		}
		if tt.end != "" {
			log += line("b") + "\n"
			want += " b"
		}
		got, bad, _ := read(t, strings.NewReader(log), Schema{})
		if fmt.Sprint(clients(got)) != want+"]" {
			t.Errorf("%s: got %v, want %s]", tt.name, clients(got), want)
		}
		tooLong := len(bad) == 1 && errors.Is(bad[0], ErrTooLong) && bad[0].Line == 2 &&
			strings.HasPrefix(bad[0].Text, "long - - [")
		if tooLong == tt.ok {
			t.Errorf("%s: malformed %v", tt.name, bad)
		}
	}
}
