package httplimit

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

// BenchmarkDecideDuringSnapshot decides on requests of a million clients, alone and while the
// million buckets are written to a file again and again.
func BenchmarkDecideDuringSnapshot(b *testing.B) {
	const clients = 1_000_000
	l := mustNew(b, slowRule(0.001, 10))
	r := request()
	decide := func(i int) {
		r.Header["K"] = []string{"client-" + strconv.Itoa(i%clients)}
		l.Decide(httptest.NewRecorder(), r)
	}
	for i := range clients {
		decide(i)
	}
	name := filepath.Join(b.TempDir(), "state")
	save := func() {
		f, err := os.Create(name)
		if err == nil {
			err = l.Snapshot(f)
		}
		if err == nil {
			err = f.Sync()
		}
		if err != nil {
			b.Error(err)
		}
		f.Close()
	}
	for _, saves := range []bool{false, true} {
		b.Run("saves="+strconv.FormatBool(saves), func(b *testing.B) {
			stop, stopped := make(chan bool), make(chan bool)
			var took []time.Duration
			go func() {
				defer close(stopped)
				for saves {
					start := time.Now()
					save()
					took = append(took, time.Since(start))
					select {
					case <-stop:
						return
					default:
					}
				}
			}()
			latencies := make([]time.Duration, 0, b.N)
			for i := range b.N {
				start := time.Now()
				decide(i * 7919)
				latencies = append(latencies, time.Since(start))
			}
			close(stop)
			<-stopped
			slices.Sort(latencies)
			at := func(q float64) float64 { return float64(latencies[int(q*float64(b.N-1))].Nanoseconds()) }
			b.ReportMetric(at(0.5), "p50-ns")
			b.ReportMetric(at(0.99), "p99-ns")
			b.ReportMetric(at(0.999), "p99.9-ns")
			if saves {
				slices.Sort(took)
				info, err := os.Stat(name)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(took[len(took)/2].Seconds(), "s/save")
				b.ReportMetric(float64(info.Size())/clients, "B/key")
			}
		})
	}
	start := time.Now()
	f, err := os.Open(name)
	if err != nil {
		b.Skip(err) // without a run that saves
	}
	defer f.Close()
	done, err := mustNew(b, slowRule(0.001, 10)).Restore(f)
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("%d buckets restored in %v", done.Buckets, time.Since(start))
}
