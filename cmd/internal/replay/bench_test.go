package replay

import (
	"bufio"
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
		{"mutex", func(o *Options) { o.reference = true }},
		{"picture", func(o *Options) { o.Picture = true }},
		{"ip+path", func(o *Options) { o.Keys = []string{"ip", "path"} }},
		{"1000-keys", func(o *Options) { o.MaxKeys = 1000 }},
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

// BenchmarkMerge replays a generated log whose lines alternate between files.
func BenchmarkMerge(b *testing.B) {
	const lines, files = 200_000, 10
	parts := make([]bytes.Buffer, files)
	log := bufio.NewScanner(samplelog.New(lines))
	for i := 0; log.Scan(); i++ {
		parts[i%files].Write(append(log.Bytes(), '\n'))
	}
	var inputs []Input
	for i := range parts {
		inputs = append(inputs, Input{"sample", func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(parts[i].Bytes())), nil
		}})
	}
	for b.Loop() {
		if rep := replay(b, options(b, "5", 10), inputs...).Report; rep.Requests != lines {
			b.Fatalf("%d requests, want %d", rep.Requests, lines)
		}
	}
	b.ReportMetric(float64(lines*b.N)/b.Elapsed().Seconds(), "lines/s")
}
