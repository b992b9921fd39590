package peers

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	"golang.org/x/time/rate"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/tbtest"
)

var update = flag.Bool("update", false, "write the table of docs/peers.md")

// subjects are the limiters of the table in docs/peers.md. Each accepts a clock and returns a wait.
var subjects = []struct {
	name string
	new  func(tb.Limit, tb.Settings) tb.Limiter
}{
	{"x/time/rate in a map", func(limit tb.Limit, s tb.Settings) tb.Limiter {
		find, _ := xtimeTable(limit, math.MaxInt)
		return adaptXTime(find, s.Now)
	}},
	{"x/time/rate in golang-lru", func(limit tb.Limit, s tb.Settings) tb.Limiter {
		find, size := xtimeTable(limit, s.MaxKeys)
		return bounded{adaptXTime(find, s.Now), size}
	}},
	{"throttled", adaptThrottled},
}

// notOfALimiter are the tests that say more of the adapter, or of chance, than of the limiter.
var notOfALimiter = map[string]string{
	"ImpossibleConfigurationIsAConfigError": "the adapter checks the limit",
	"ClockIsReadOncePerCall":                "the adapter reads the clock",
	"ContextIsIgnored":                      "the adapter has no context",
	"FractionalCostsAreExact":               "the others take whole tokens",
	"FractionalCostIsNeverFree":             "the others take whole tokens",
	"BoundWithLateConcurrentReadings":       "a limiter that fails it may pass by chance",
	"KeysAreCopied":                         stringsStay,
	"CopiedKeysAreEvicted":                  stringsStay,
	"CopiedKeysAreEvictedWhenFull":          stringsStay,
	"CopiedKeysStayUnderRefuseNew":          stringsStay,
}

const stringsStay = "a caller of a Go map may not change the bytes of a string"

// adapter makes a tb.Limiter of a function that takes n tokens of a key.
type adapter func(key string, n int) (tb.Decision, error)

func (a adapter) Allow(_ context.Context, key string) (tb.Decision, error) { return a(key, 1) }

func (a adapter) AllowN(_ context.Context, key string, cost float64) (tb.Decision, error) {
	return a(key, int(math.Ceil(min(cost, math.MaxInt32))))
}

// bounded is a limiter with a bound of its keys.
type bounded struct {
	tb.Limiter
	size func() int
}

func (b bounded) Len() int { return b.size() }

// adaptXTime has a lock, because what a refused call reserves for its wait, and gives back, is
// taken meanwhile.
func adaptXTime(find func(key string) *rate.Limiter, now func() time.Time) adapter {
	var mu sync.Mutex
	return func(key string, n int) (d tb.Decision, err error) {
		mu.Lock()
		defer mu.Unlock()
		l, t := find(key), now()
		if d.Allowed = l.AllowN(t, n); !d.Allowed {
			r := l.ReserveN(t, n)
			if d.RetryAfter = r.DelayFrom(t); !r.OK() {
				d.RetryAfter = tb.Never
			}
			r.CancelAt(t)
		}
		d.Remaining = int(l.TokensAt(t))
		return d, nil
	}
}

func adaptThrottled(limit tb.Limit, s tb.Settings) tb.Limiter {
	store := must(memstore.New(s.MaxKeys))
	store.SetTimeNow(s.Now)
	l := newThrottled(limit, throttled.WrapStoreWithContext(store))
	l.SetMaxCASAttemptsLimit(math.MaxInt)
	return adapter(func(key string, n int) (tb.Decision, error) {
		limited, r, err := l.RateLimitCtx(context.Background(), key, n)
		d := tb.Decision{Allowed: !limited, RetryAfter: r.RetryAfter, Remaining: r.Remaining}
		switch {
		case d.Allowed:
			d.RetryAfter = 0
		case r.RetryAfter == -1:
			d.RetryAfter = tb.Never
		}
		return d, err
	})
}

// TestSubject runs the contract on the limiter that TestTable names.
func TestSubject(t *testing.T) {
	for _, s := range subjects {
		if s.name != os.Getenv("SUBJECT") {
			continue
		}
		tbtest.RunExcept(t, func(limit tb.Limit, opts ...tb.Option) (tb.Limiter, error) {
			settings, err := tb.Apply(append([]tb.Option{tb.WithClock(time.Now)}, opts...)...)
			if err == nil {
				err = limit.Validate()
			}
			if err != nil {
				return nil, err
			}
			return s.new(limit, settings), nil
		}, notOfALimiter)
	}
}

var verdictLine = regexp.MustCompile(`--- (PASS|FAIL): TestSubject/(\w+)`)

// TestTable compares the table of docs/peers.md with what tbtest says of each limiter. With
// -update it writes the table.
func TestTable(t *testing.T) {
	var names []string // of the tests, in the order of the suite
	verdicts := make(map[string][]string)
	for i, s := range subjects {
		child := exec.Command(os.Args[0], "-test.run=^TestSubject$", "-test.v", "-test.timeout=5m")
		child.Env = append(os.Environ(), "SUBJECT="+s.name)
		output, _ := child.CombinedOutput() // a limiter that fails is an exit status of 1
		if bytes.Contains(output, []byte("panic: ")) {
			t.Errorf("%s: a test panics:\n%s", s.name, output)
		}
		for _, m := range verdictLine.FindAllSubmatch(output, -1) {
			name := string(m[2])
			if verdicts[name] == nil {
				names = append(names, name)
				verdicts[name] = slices.Repeat([]string{"–"}, len(subjects))
			}
			verdicts[name][i] = map[string]string{"PASS": "passes", "FAIL": "**fails**"}[string(m[1])]
		}
	}
	var table strings.Builder
	table.WriteString("| test")
	for _, s := range subjects {
		table.WriteString(" | " + s.name)
	}
	table.WriteString(" |\n|" + strings.Repeat("---|", 1+len(subjects)) + "\n")
	for _, name := range names {
		fmt.Fprintf(&table, "| %s | %s |\n", name, strings.Join(verdicts[name], " | "))
	}

	const document = "../../../docs/peers.md"
	text := string(must(os.ReadFile(document)))
	before, rest, _ := strings.Cut(text, "| test")
	_, after, found := strings.Cut(rest, "\n\n")
	switch generated := before + table.String() + "\n" + after; {
	case !found:
		t.Fatal("the document has no table")
	case *update:
		if err := os.WriteFile(document, []byte(generated), 0o644); err != nil {
			t.Fatal(err)
		}
	case generated != text:
		t.Errorf("the document differs (-update writes it); the table is\n%s", &table)
	}
}
