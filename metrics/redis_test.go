package metrics

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/seed-181794aa/ratelimit/tb/redis"
)

func TestCollectsDecisions(t *testing.T) {
	wantText(t, Redis("users", fixed{
		Granted: 1, Refused: 2, RefusedLocally: 3, Leased: 4, PolicyGranted: 5, PolicyRefused: 6,
	}), `
		# HELP tb_redis_decisions_total Calls, by what decided them and by outcome: granted or refused.
		# TYPE tb_redis_decisions_total counter
		tb_redis_decisions_total{by="denial cache",limiter="users",outcome="refused",rule=""} 3
		tb_redis_decisions_total{by="failure policy",limiter="users",outcome="granted",rule=""} 5
		tb_redis_decisions_total{by="failure policy",limiter="users",outcome="refused",rule=""} 6
		tb_redis_decisions_total{by="lease",limiter="users",outcome="granted",rule=""} 4
		tb_redis_decisions_total{by="server",limiter="users",outcome="granted",rule=""} 1
		tb_redis_decisions_total{by="server",limiter="users",outcome="refused",rule=""} 2
	`, "tb_redis_decisions_total")
}

func wantText(t *testing.T, c prometheus.Collector, text string, names ...string) {
	t.Helper()
	if err := testutil.CollectAndCompare(c, strings.NewReader(text), names...); err != nil {
		t.Error(err)
	}
}

type fixed redis.Stats

func (s fixed) Stats() redis.Stats { return redis.Stats(s) }

// TestCollectsEachField gives each field of the statistics another number.
func TestCollectsEachField(t *testing.T) {
	var s redis.Stats
	var numbers []float64
	next := func() int64 {
		numbers = append(numbers, float64(1000+len(numbers)))
		return int64(numbers[len(numbers)-1])
	}
	v := reflect.ValueOf(&s).Elem()
	for _, field := range reflect.VisibleFields(v.Type()) {
		switch f := v.FieldByIndex(field.Index); f.Interface().(type) {
		case map[redis.Cause]uint64:
			f.Set(reflect.ValueOf(map[redis.Cause]uint64{redis.CauseBusy: uint64(next())}))
		case time.Duration:
			f.SetInt(next() * int64(time.Second))
		case int, redis.BreakerState:
			f.SetInt(next())
		case uint64:
			f.SetUint(uint64(next()))
		case float64:
			f.SetFloat(float64(next()))
		case redis.Policy, redis.ServerStats: // a setting, and the fields that follow
		default:
			t.Fatalf("a field of type %v", f.Type())
		}
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(Redis("x", fixed(s)))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []float64
	var rows []string
	for _, f := range families {
		labels := map[string]bool{}
		for _, m := range f.GetMetric() {
			got = append(got, m.GetCounter().GetValue()+m.GetGauge().GetValue())
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = true
			}
		}
		row := fmt.Sprintf("%s %s", f.GetName(), strings.ToLower(f.GetType().String()))
		for _, l := range []string{"by", "outcome", "cause"} {
			if labels[l] {
				row += " " + l
			}
		}
		rows = append(rows, row)
	}
	slices.Sort(got)
	if !slices.Equal(got, numbers) {
		t.Errorf("collected %v, want %v: each field once", got, numbers)
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
	compareWithTheDocument(t, rows)
}

// compareWithTheDocument requires that the table in docs/redis.md has exactly these metrics.
func compareWithTheDocument(t *testing.T, rows []string) {
	t.Helper()
	document, err := os.ReadFile("../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	row := regexp.MustCompile("(?m)^\\| `tb_redis_.*$")
	for _, row := range row.FindAllString(string(document), -1) {
		cells := strings.Split(row, "|")
		words := regexp.MustCompile("[a-z_]+").FindAllString(strings.Join(cells[1:4], " "), -1)
		documented = append(documented, strings.Join(words, " "))
	}
	slices.Sort(documented)
	if !slices.Equal(documented, rows) {
		t.Errorf("docs/redis.md has the metrics\n%s\nwant\n%s",
			strings.Join(documented, "\n"), strings.Join(rows, "\n"))
	}
}
