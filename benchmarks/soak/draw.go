package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-181794aa/ratelimit/internal/svgchart"
)

// style has the colours of the lines: of the store, or of the quantile. The colours have a contrast
// of at least 3 to 1 with white and with the near-black of dark pages.
const style = `.chart { color: #787878; }
.chart .line { stroke-width: 1.4; }
.chart .memory { color: #d55e00; }
.chart .redis { color: #1f7dc4; }
.chart .second { stroke-dasharray: 4 3; }
.chart .p50 { color: #00966c; }
.chart .p99 { color: #1f7dc4; }
.chart .p999 { color: #d55e00; }
.chart .allowed { stroke-dasharray: 4 3; }
.chart .unexpected { color: #d55e00; }
`

// draw writes a drawing of tb proxy and one of tb rls.
func (r *records) draw(dir string) error {
	for _, command := range []string{"proxy", "rls"} {
		memory, redis := r.of(command+"-memory"), r.of(command+"-redis")
		if len(memory) < 2 {
			return fmt.Errorf("%s has %d samples of %s", recordsFile, len(memory), command)
		}
		charts := []svgchart.Chart{
			r.chart("Memory of tb "+command, "MB", false, both("resident", "", measures[0], memory, redis),
				both("heap", " second", measures[1], memory, redis)),
			r.chart("Descriptors and goroutines", "", false,
				both("descriptors", "", measures[2], memory, redis),
				both("goroutines", " second", measures[3], memory, redis)),
			r.chart("Time of an answer, buckets in memory", "ms", true, quantiles(memory)),
			r.chart("Time of an answer, buckets in Redis", "ms", true, quantiles(redis)),
			r.chart("Clients above their limit", "grants a second", false, grants(memory, redis)),
			r.chart("Errors in a sample", "", false, failures(memory, redis)),
		}
		name := filepath.Join(dir, "soak-"+command+".svg")
		if err := os.WriteFile(name, svgchart.Drawing(charts, 2, style), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// line returns a line of the samples of a server. It leaves out the samples for which the value is
// 0, if they are not part of it.
func line(name, class string, samples []sample, value func(sample) float64, zeros bool,
) svgchart.Layer {
	l := svgchart.Layer{Name: name, Class: class}
	for _, s := range samples {
		if v := value(s); v > 0 || zeros {
			l.Points = append(l.Points, svgchart.Point{X: s.Seconds / 60, Y: v})
		}
	}
	return l
}

// both returns lines of a measure of the two servers.
func both(name, class string, m measure, memory, redis []sample) []svgchart.Layer {
	value := func(s sample) float64 { return m.of(s) / m.unit }
	return []svgchart.Layer{
		line(name+", memory", "memory"+class, memory, value, false),
		line(name+", Redis", "redis"+class, redis, value, false),
	}
}

func quantiles(samples []sample) []svgchart.Layer {
	return []svgchart.Layer{
		line("p99.9", "p999", samples, func(s sample) float64 { return s.P999 }, false),
		line("p99", "p99", samples, func(s sample) float64 { return s.P99 }, false),
		line("p50", "p50", samples, func(s sample) float64 { return s.P50 }, false),
	}
}

func grants(memory, redis []sample) []svgchart.Layer {
	hot := func(s sample) float64 { return s.Hot }
	return []svgchart.Layer{
		line("memory", "memory", memory, hot, true),
		line("Redis", "redis", redis, hot, true),
		line("supplied", "allowed", memory, func(s sample) float64 { return s.Allowed }, true),
	}
}

func failures(memory, redis []sample) []svgchart.Layer {
	expected := func(s sample) float64 { return float64(s.Expected) }
	l := []svgchart.Layer{
		line("memory, by an event", "memory", memory, expected, true),
		line("Redis, by an event", "redis", redis, expected, true),
		line("unexplained", "unexpected second", slices.Concat(memory, redis), func(s sample) float64 {
			return float64(s.Unexpected)
		}, false),
	}
	l[2].Shape = svgchart.Crosses
	return l
}

// chart returns a chart of layers over the minutes of the run. Its y axis begins at 0, or is
// logarithmic.
func (r *records) chart(title, y string, log bool, layers ...[]svgchart.Layer) svgchart.Chart {
	c := svgchart.Chart{
		Title: title, Text: title, Width: 530, Height: 300, Layers: slices.Concat(layers...),
		X: svgchart.Axis{Label: "minutes"}, Y: svgchart.Axis{Label: y, Log: log},
	}
	minutes, least, most := 0.0, math.Inf(1), 0.0
	for _, l := range c.Layers {
		for _, p := range l.Points {
			minutes, least, most = max(minutes, p.X), min(least, p.Y), max(most, p.Y)
		}
	}
	c.X.Max, c.X.Ticks = minutes, linear(minutes)
	if !log {
		c.Y.Ticks = linear(max(most, 1))
		c.Y.Max = max(most, 1) * 1.05
		return c
	}
	for v := math.Pow(10, math.Floor(math.Log10(least))); ; v *= 10 {
		c.Y.Ticks = append(c.Y.Ticks, tick(v))
		if v >= most && len(c.Y.Ticks) > 1 {
			break
		}
	}
	c.Y.Min, c.Y.Max = c.Y.Ticks[0].Value, c.Y.Ticks[len(c.Y.Ticks)-1].Value
	return c
}

// linear returns about five ticks from 0 to a value.
func linear(most float64) (ticks []svgchart.Tick) {
	step := math.Pow(10, math.Floor(math.Log10(most/4)))
	for _, factor := range []float64{5, 2} {
		if step*factor <= most/4 {
			step *= factor
			break
		}
	}
	for i := 0.0; i*step <= most; i++ {
		ticks = append(ticks, tick(i*step))
	}
	return ticks
}

func tick(v float64) svgchart.Tick {
	return svgchart.Tick{Value: v, Label: strings.TrimSuffix(strconv.FormatFloat(v, 'g', 6, 64), ".0")}
}
