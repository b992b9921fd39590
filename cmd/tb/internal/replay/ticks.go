package replay

import (
	"fmt"
	"math"
	"time"

	"gonum.org/v1/plot"
)

// wholeTicks marks whole numbers on an axis. The ticks of the plot package also mark
// fractions, such as 2.5.
type wholeTicks struct{}

// Ticks implements plot.Ticker: at most 7 numbers, with steps of 1, 2, 5, 10, …
func (wholeTicks) Ticks(first, last float64) []plot.Tick {
	const most = 7
	step := 1.0
	for i := 0; (last-first)/step > most-1; i++ {
		step *= [...]float64{2, 2.5, 2}[i%3]
	}
	return ticks(first, last, step, func(v float64) string { return grouped(int64(v)) })
}

// ticks marks the multiples of step from first to last.
func ticks(first, last, step float64, label func(float64) string) (all []plot.Tick) {
	for v := math.Ceil(first/step) * step; v <= last; v += step {
		all = append(all, plot.Tick{Value: v, Label: label(v)})
	}
	return all
}

const day = 24 * time.Hour

// timeSteps are the possible distances between the marks of a time axis.
var timeSteps = []time.Duration{
	time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute,
	15 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	day, 2 * day, 7 * day, 30 * day, 90 * day, 365 * day, 3650 * day, 36500 * day,
}

// timeTicks marks round times of UTC on an axis in seconds since 1970. The ticks of the
// plot package are round in decimal: 100,000 seconds and not a day.
type timeTicks struct{}

// Ticks implements plot.Ticker: as many times as have room for their labels.
func (timeTicks) Ticks(first, last float64) []plot.Tick {
	const most = 9
	i := 0
	for i < len(timeSteps)-1 && (last-first)/timeSteps[i].Seconds() > most {
		i++
	}
	format := timeFormat(timeSteps[i], last-first > day.Seconds())
	return ticks(first, last, timeSteps[i].Seconds(), func(v float64) string {
		return time.Unix(int64(v), 0).UTC().Format(format)
	})
}

// timeFormat returns the shortest format in which marks that are step apart differ.
func timeFormat(step time.Duration, severalDays bool) string {
	switch {
	case step >= day:
		return time.DateOnly
	case severalDays:
		return "Jan 2 15:04"
	case step >= time.Minute:
		return "15:04"
	}
	return time.TimeOnly
}

// powerTicks marks the powers of ten on a logarithmic axis.
type powerTicks struct{}

// Ticks implements plot.Ticker.
func (powerTicks) Ticks(first, last float64) (all []plot.Tick) {
	for v := powerBelow(first); v <= last*(1+1e-9); v *= 10 {
		label := fmt.Sprint(v)
		if v >= 1 {
			label = grouped(uint64(v))
		}
		all = append(all, plot.Tick{Value: v, Label: label})
	}
	return all
}

// powerBelow returns the greatest power of ten that is not above v.
func powerBelow(v float64) float64 { return math.Pow(10, math.Floor(math.Log10(v)+1e-9)) }

// powerAbove returns the least power of ten that is not below v.
func powerAbove(v float64) float64 { return math.Pow(10, math.Ceil(math.Log10(v)-1e-9)) }
