package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/samplelog"
	"github.com/seed-181794aa/ratelimit/tb"
)

// options returns those of a single limit by client address.
func options(t testing.TB, rate string, burst Burst) Options {
	return Options{
		Rates: []Rate{mustRate(t, rate)}, Bursts: []Burst{burst}, Keys: []string{"ip"},
		IPv6Prefix: 64, Cost: mustCost(t, "1"), MaxKeys: tb.DefaultMaxKeys, Impl: "cas",
	}
}

func input(name, log string) Input {
	return Input{name, func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(log)), nil
	}}
}

func replay(t testing.TB, o Options, inputs ...Input) *Result {
	t.Helper()
	res, err := Run(t.Context(), o, accesslog.Schema{}, inputs)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// line is a request of a client at a second, for a body of that many bytes.
func line(client string, second, size int) string {
	return fmt.Sprintf("%s - - [17/May/2015:10:%02d:%02d +0000] \"GET /p HTTP/1.1\" 200 %d\n",
		client, second/60, second%60, size)
}

func TestDecisionsByHand(t *testing.T) {
	type step struct {
		client string
		second int
		left   int // tokens before, of a burst of 2 that refills 1 a second
		ok     bool
	}
	timeline := []step{
		{"a", 10, 2, true},
		{"a", 10, 1, true},
		{"a", 10, 0, false},
		{"b", 10, 2, true}, // another bucket
		{"a", 11, 1, true},
		{"a", 11, 0, false},
		{"a", 9, 0, false}, // late: no refill, and time does not move back
		{"a", 11, 0, false},
		{"a", 12, 1, true}, // had it moved back to 9, there would be 2
		{"a", 12, 0, false},
		{"b", 8, 1, true}, // late: decided on the bucket as it stands
		{"b", 10, 0, false},
		{"b", 11, 1, true},
		{"a", 60, 2, true}, // no more than the burst
		{"a", 60, 1, true},
		{"a", 60, 0, false},
	}
	for _, impl := range []string{"cas", "mutex"} {
		o := options(t, "1", 2)
		o.Impl = impl
		r, err := newReplayer(o)
		if err != nil {
			t.Fatal(err)
		}
		reader, err := accesslog.NewReader(t.Context(), "by hand", strings.NewReader(
			func() (log string) {
				for _, s := range timeline {
					log += line(s.client, s.second, 1)
				}
				return log
			}()), accesslog.Schema{})
		if err != nil {
			t.Fatal(err)
		}
		var rec accesslog.Record
		for i, s := range timeline {
			granted := r.trials[0].granted
			if err := errors.Join(reader.Next(&rec), r.add(&rec)); err != nil {
				t.Fatal(err)
			}
			if got := r.trials[0].granted > granted; got != s.ok || (s.left > 0) != s.ok {
				t.Errorf("%s: request %d of %s at %d s: granted %v, want %v",
					impl, i, s.client, s.second, got, s.ok)
			}
		}
	}
}

func TestReportByHand(t *testing.T) {
	log := line("a", 10, 1) + line("a", 10, 1) + line("a", 10, 1) + line("a", 10, 1) +
		"broken\n" + line("b", 8, 1) + line("a", 11, 1) + line("a", 11, 1)
	two := input("two.log", line("c", 5, 1))
	rep := replay(t, options(t, "1", 2), input("one.log", log), two).Report
	text := func(v any) string { b, _ := json.Marshal(v); return string(b) }
	for _, tt := range []struct {
		name string
		got  any
		want string
	}{
		{"requests", rep.Requests, "8"},
		{"files", rep.Files, `[{"name":"one.log","format":"common","lines":8,"malformed":1},` +
			`{"name":"two.log","format":"common","lines":1,"malformed":0}]`},
		{"first", rep.First, `"2015-05-17T10:00:05Z"`},
		{"last", rep.Last, `"2015-05-17T10:00:11Z"`},
		{"stepped back", rep.SteppedBack, "2"},
		{"longest step", rep.LongestStep, "6"},
		{"keys", rep.Keys, "3"},
		{"exact", rep.KeysExact, "true"},
		{"limits", rep.Limits, `[{"rate":"1/s","burst":2,"granted":5,"refused":3,` +
			`"refused_share":0.375,"never_granted":0,"keys_refused":1,` +
			`"keys_refused_share":0.3333333333333333,"evicted_full":0,"evicted_in_debt":0,` +
			`"forgiven":0,"refused_new":0}]`},
		{"top", rep.Top, `[{"key":["a"],"requests":6,"refused":3,"partial":false,` +
			`"refused_most":3,"peak_per_second":4,"longest_run":2}]`},
	} {
		if text(tt.got) != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, text(tt.got), tt.want)
		}
	}
	if len(rep.Malformed) != 1 || !strings.HasPrefix(rep.Malformed[0], "one.log:5: ") {
		t.Errorf("malformed %q, want one.log:5", rep.Malformed)
	}
}

func TestOnlyTheFirstMalformedLinesAreShown(t *testing.T) {
	log := strings.Repeat("x\n", 100) + line("a", 1, 1)
	rep := replay(t, options(t, "1", 2), input("a.log", log)).Report
	if len(rep.Malformed) != maxShown || rep.Files[0].Malformed != 100 {
		t.Errorf("%d shown of %d", len(rep.Malformed), rep.Files[0].Malformed)
	}
}

func TestCostAboveTheBurstIsNeverGranted(t *testing.T) {
	o := options(t, "1", 2)
	o.Cost = mustCost(t, "bytes/KiB")
	log := line("a", 1, 1024) + line("a", 1, 2049) + line("a", 1, 1024) + line("a", 1, 512)
	l := replay(t, o, input("a.log", log)).Report.Limits[0]
	if l.Granted != 2 || l.Refused != 2 || l.NeverGranted != 1 {
		t.Errorf("%d granted, %d refused, %d never; want 2, 2, 1",
			l.Granted, l.Refused, l.NeverGranted)
	}
}

// A request without a size costs a byte: it is not free.
func TestUnloggedSizeCostsAByte(t *testing.T) {
	o := options(t, "1/d", 3)
	o.Cost = mustCost(t, "bytes")
	log := strings.Repeat(strings.Replace(line("a", 1, 0), " 200 0", " 304 -", 1), 4)
	l := replay(t, o, input("a.log", log)).Report.Limits[0]
	if l.Granted != 3 || l.Refused != 1 {
		t.Errorf("%d granted, %d refused; want 3 and 1", l.Granted, l.Refused)
	}
}

func TestCostAndKeyFields(t *testing.T) {
	o := options(t, "1/d", 4)
	o.Keys, o.Cost = []string{"tenant", "user"}, mustCost(t, "weight")
	log := `{"ts":1431857103,"tenant":"t","user":"u","weight":1.5}
		{"ts":1431857103,"tenant":"t","user":"u","weight":"2.5"}
		{"ts":1431857103,"tenant":"t","user":"u","weight":0.1}
		{"ts":1431857103,"tenant":"t","weight":4}
		{"ts":1431857103,"user":"t"}`
	rep := replay(t, o, input("a.log", log)).Report
	l := rep.Limits[0]
	if l.Granted != 4 || l.Refused != 1 || rep.Keys != 3 || rep.CostStandIns != 1 {
		t.Errorf("%d granted, %d refused, %d keys, %d stand-ins; want 4, 1, 3, 1",
			l.Granted, l.Refused, rep.Keys, rep.CostStandIns)
	}
	if want := map[string]uint64{"tenant": 1, "user": 1}; !reflect.DeepEqual(rep.Missing, want) {
		t.Errorf("missing %v, want %v", rep.Missing, want)
	}
}

func TestInputWithoutAValidLineIsAnError(t *testing.T) {
	for _, log := range []string{"", "\n\n", "x\ny\n"} {
		res, err := Run(t.Context(), options(t, "1", 2), accesslog.Schema{},
			[]Input{input("good.log", line("a", 1, 1)), input("bad.log", log)})
		if err == nil || !strings.HasPrefix(err.Error(), "bad.log: no valid line") {
			t.Errorf("%q: error %v", log, err)
		}
		if res.Report.Requests != 1 || len(res.Report.Limits) != 1 {
			t.Errorf("%q: the good file is not in the report: %+v", log, res.Report)
		}
	}
}

func TestReadErrorsKeepTheReport(t *testing.T) {
	broken := errors.New("disk on fire")
	in := Input{"a.log", func() (io.ReadCloser, error) {
		log := strings.NewReader(line("a", 1, 1))
		return io.NopCloser(io.MultiReader(log, failing{broken})), nil
	}}
	res, err := Run(t.Context(), options(t, "1", 2), accesslog.Schema{}, []Input{in})
	if !errors.Is(err, broken) || res.Report.Requests != 1 || res.Report.Interrupted {
		t.Errorf("%v with %+v", err, res.Report)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// cancelling ends the context when the log has been read so far.
type cancelling context.CancelFunc

func (c cancelling) Read([]byte) (int, error) {
	c()
	select {} // like a terminal on which nobody types
}

func TestInterruptedRunReportsWhatItHas(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in := Input{"a.log", func() (io.ReadCloser, error) {
		log := strings.NewReader(line("a", 1, 1) + line("b", 2, 1))
		return io.NopCloser(io.MultiReader(log, cancelling(cancel))), nil
	}}
	rest := input("b.log", line("c", 3, 1))
	res, err := Run(ctx, options(t, "1", 2), emptySchema, []Input{in, rest})
	if err != nil || !res.Report.Interrupted || res.Report.Requests != 2 || res.Report.Keys != 2 {
		t.Errorf("%v with %+v", err, res.Report)
	}
}

// A named pipe that nobody writes to blocks whoever opens it.
func TestInterruptWhileAnInputIsOpened(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in := Input{"pipe", func() (io.ReadCloser, error) {
		cancel()
		select {}
	}}
	res, err := Run(ctx, options(t, "1", 2), emptySchema, []Input{input("a", line("a", 1, 1)), in})
	if err != nil || !res.Report.Interrupted || res.Report.Requests != 1 {
		t.Errorf("%v with %+v", err, res.Report)
	}
}

// sampled returns a generated log as an input.
func sampled(lines int) Input {
	return Input{"sample", func() (io.ReadCloser, error) {
		return io.NopCloser(samplelog.New(lines)), nil
	}}
}

func TestImplementationsGiveTheSameReport(t *testing.T) {
	for _, cost := range []string{"1", "0.3", "bytes/KiB"} {
		o := options(t, "2", 20)
		o.Cost = mustCost(t, cost)
		cas := replay(t, o, sampled(20_000))
		o.Impl = "mutex"
		mutex := replay(t, o, sampled(20_000))
		// How many full buckets each drops is its own affair: no decision depends on it.
		cas.Report.Limits[0].EvictedFull, mutex.Report.Limits[0].EvictedFull = 0, 0
		if !reflect.DeepEqual(cas.Report, mutex.Report) {
			t.Errorf("cost %s:\ncas:   %+v\nmutex: %+v", cost, cas.Report, mutex.Report)
		}
		if cas.Report.Limits[0].Refused == 0 {
			t.Errorf("cost %s: nothing was refused", cost)
		}
	}
}

func TestSweepEqualsSeparateRuns(t *testing.T) {
	o := options(t, "1", 5)
	o.Rates = []Rate{mustRate(t, "0.5"), mustRate(t, "60/m"), mustRate(t, "5")}
	o.Bursts = []Burst{5, 10, 30}
	sweep := replay(t, o, sampled(20_000)).Report
	if len(sweep.Limits) != 9 || len(sweep.Top) != 0 {
		t.Fatalf("%d limits, %d top keys; want 9 and none", len(sweep.Limits), len(sweep.Top))
	}
	different := make(map[uint64]bool)
	for i, got := range sweep.Limits {
		one := o
		one.Rates, one.Bursts = o.Rates[i/3:i/3+1], o.Bursts[i%3:i%3+1]
		want := replay(t, one, sampled(20_000)).Report.Limits[0]
		got.EvictedFull, want.EvictedFull = 0, 0 // as above
		if got != want {
			t.Errorf("in the sweep: %+v\nalone: %+v", got, want)
		}
		different[got.Refused] = true
	}
	if len(different) < 5 {
		t.Errorf("the limits hardly differ: refused %v", different)
	}
}

func TestMaxKeysBoundsTheTable(t *testing.T) {
	var log strings.Builder
	for n := range 100 {
		log.WriteString(line(fmt.Sprintf("client%d", n), 1, 1))
	}
	o := options(t, "1/d", 1)
	o.MaxKeys = 10
	forgiven := replay(t, o, input("a.log", log.String())).Report.Limits[0]
	if forgiven.EvictedInDebt != 90 || forgiven.Refused != 0 || forgiven.Forgiven < 89.9 {
		t.Errorf("forgive: %+v; want 90 evicted in debt", forgiven)
	}
	o.Overflow = tb.RefuseNew
	refused := replay(t, o, input("a.log", log.String())).Report.Limits[0]
	if refused.RefusedNew != 90 || refused.Refused != 90 || refused.EvictedInDebt != 0 {
		t.Errorf("refuse: %+v; want 90 refused", refused)
	}
}

var emptySchema accesslog.Schema
