package replay

import (
	"bytes"
	"io"
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/internal/samplelog"
)

// BenchmarkReplay replays a generated log, from bytes in memory to the report.
func BenchmarkReplay(b *testing.B) {
	const lines = 200_000
	log, err := io.ReadAll(samplelog.New(lines))
	if err != nil {
		b.Fatal(err)
	}
	in := Input{"sample", func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(log)), nil
	}}
	for _, bm := range []struct {
		name string
		set  func(*Options)
	}{
		{"cas", func(*Options) {}},
		{"picture", func(o *Options) { o.Picture = true }},
		{"suggest-24", func(o *Options) { *o = suggestOptions(b, "1%", "") }},
		{"policy", func(o *Options) {
			p, err := policyOptions(b, `{"name": "a", "limit_keys": ["ip:address"],
				"algorithm_config": {"tokens_per_second": 5, "burst": 10}}`)
			if err != nil {
				b.Fatal(err)
			}
			*o = p
		}},
		{"suggest-24-bytes", func(o *Options) {
			*o = suggestOptions(b, "1%", "")
			o.Cost = mustCost(b, "bytes")
		}},
	} {
		b.Run(bm.name, func(b *testing.B) {
			o := options(b, "5", 10)
			bm.set(&o)
			b.SetBytes(int64(len(log)))
			b.ReportAllocs()
			for b.Loop() {
				if rep := replay(b, o, in).Report; rep.Requests != lines {
					b.Fatalf("%d requests, want %d", rep.Requests, lines)
				}
			}
			b.ReportMetric(float64(lines*b.N)/b.Elapsed().Seconds(), "lines/s")
		})
	}
}
