package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/cmd/internal/samplelog"
	"github.com/seed-181794aa/ratelimit/tb"
)

// options returns the options of a single limit by client address.
func options(t testing.TB, rate string, burst int) Options {
	return Options{
		Rate: mustRate(t, rate), Burst: burst, Keys: []string{"ip"},
		IPv6Prefix: 64, MaxKeys: tb.DefaultMaxKeys,
	}
}

func input(name, log string) Input {
	return Input{name, func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(log)), nil
	}}
}

func replay(t testing.TB, o Options, inputs ...Input) *Report {
	t.Helper()
	res, err := Run(t.Context(), o, inputs)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// line is a request of a client at a second, for a body of that many bytes.
func line(client string, second, size int) string {
	return fmt.Sprintf("%s - - [17/May/2015:%02d:%02d:%02d +0000] \"GET /p HTTP/1.1\" 200 %d\n",
		client, 10+second/3600, second/60%60, second%60, size)
}

// aDay returns a log that begins a day earlier, with a request of another client.
func aDay(log string) string {
	return `192.0.2.255 - - [16/May/2015:10:00:00 +0000] "GET /early HTTP/1.1" 200 1` + "\n" + log
}

// A log that has just been rotated is empty, which is an error only if no file has a request.
func TestEmptyFiles(t *testing.T) {
	for _, tt := range []struct {
		other string
		want  error
	}{{line("a", 1, 1), nil}, {"", accesslog.ErrEmpty}} {
		res, err := Run(t.Context(), options(t, "1", 2),
			[]Input{input("empty.log", ""), input("other.log", tt.other)})
		if !errors.Is(err, tt.want) || len(res.Files) != 2 {
			t.Errorf("%q: error %v, files %v; want %v", tt.other, err, res.Files, tt.want)
		}
	}
}

// A log that is mostly unread is an error. The report covers the rest.
func TestALogOfMostlyMalformedLines(t *testing.T) {
	bad := line("a", 1, 1) + strings.Repeat("nothing\n\n", 500)
	good := line("a", 1, 1) + line("b", 2, 1) + strings.Repeat("nothing\n", 2)
	res, err := Run(t.Context(), options(t, "1", 2),
		[]Input{input("bad.log", bad), input("good.log", good)})
	const want = "bad.log: 500 of 501 lines are malformed, for example bad.log:2: "
	if err == nil || !strings.HasPrefix(err.Error(), want) || res.Requests != 3 {
		t.Errorf("%d requests, error %v", res.Requests, err)
	}
}

func TestReadErrorsKeepTheReport(t *testing.T) {
	broken := errors.New("disk on fire")
	in := Input{"a.log", func() (io.ReadCloser, error) {
		log := strings.NewReader(line("a", 1, 1))
		return io.NopCloser(io.MultiReader(log, failing{broken})), nil
	}}
	missing := errors.New("no such file")
	gone := Input{"gone.log", func() (io.ReadCloser, error) { return nil, missing }}
	res, err := Run(t.Context(), options(t, "1", 2), []Input{gone, in})
	if !errors.Is(err, broken) || !errors.Is(err, missing) || res.Requests != 1 || res.Interrupted {
		t.Errorf("%v with %+v", err, res)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// cancelling ends the context when the log has been read so far.
type cancelling context.CancelFunc

func (c cancelling) Read([]byte) (int, error) {
	c()
	select {} // like a terminal without input
}

func TestInterruptedRunReportsWhatItHas(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in := Input{"a.log", func() (io.ReadCloser, error) {
		log := strings.NewReader(line("a", 1, 1) + line("b", 2, 1))
		return io.NopCloser(io.MultiReader(log, cancelling(cancel))), nil
	}}
	rest := file(t, "b.log", line("c", 3, 1))
	res, err := Run(ctx, options(t, "1", 2), []Input{rest, in})
	if err != nil || !res.Interrupted || res.Requests != 2 || res.Keys != 2 {
		t.Errorf("%v with %+v", err, res)
	}
}

// sampled returns a generated log as an input.
func sampled(lines int) Input {
	return Input{"sample", func() (io.ReadCloser, error) {
		return io.NopCloser(samplelog.New(lines)), nil
	}}
}
