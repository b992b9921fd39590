package accesslog

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// blocked never returns from Read.
type blocked struct{ reading chan struct{} }

func (b blocked) Read([]byte) (int, error) {
	close(b.reading)
	select {}
}

func TestContextEndsABlockedRead(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	stuck := blocked{make(chan struct{})}
	in := io.MultiReader(strings.NewReader(line("a")+"\n"), stuck)
	r, err := NewReader(ctx, "a.log", in, Schema{})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		<-stuck.reading
		cancel()
	}()
	var rec Record
	if err := r.Next(&rec); err != nil || string(rec.Peer) != "a" {
		t.Fatalf("first line: %v, %v", kept(&rec), err)
	}
	if err := r.Next(&rec); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that the context was cancelled", err)
	}
}
