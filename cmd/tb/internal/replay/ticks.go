package replay

import (
	"math"
	"time"

	"gonum.org/v1/plot"
)

// wholeTicks marks whole numbers on an axis of what cannot be divided. The ticks that come
// with the plots mark two and a half of five.
type wholeTicks struct{}

// Ticks implements plot.Ticker: it marks 7 numbers at most, with steps of 1, 2, 5, 10, …
func (wholeTicks) Ticks(first, last float64) []plot.Tick {
	const most = 7
	step := 1.0
	for i := 0; (last-first)/step > most-1; i++ {
		step *= [...]float64{2, 2.5, 2}[i%3]
	}
	var ticks []plot.Tick
	for at := math.Ceil(first/step) * step; at <= last; at += step {
		ticks = append(ticks, plot.Tick{Value: at, Label: count(int64(at))})
	}
	return ticks
}

const day = 24 * time.Hour

// tickSteps are the distances between marks on the time axis to choose from.
var tickSteps = []time.Duration{
	time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute,
	15 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	day, 2 * day, 7 * day, 30 * day, 90 * day, 365 * day, 3650 * day, 36500 * day,
}

// timeTicks marks round instants of UTC on an axis in seconds since 1970. The ticks that
// come with the plots are round in decimal, at 100,000 seconds instead of a day.
type timeTicks struct{}

// Ticks implements plot.Ticker: it marks as many instants as have room for their labels.
func (timeTicks) Ticks(first, last float64) []plot.Tick {
	const most = 9
	i := 0
	for i < len(tickSteps)-1 && (last-first)/tickSteps[i].Seconds() > most {
		i++
	}
	step := int64(tickSteps[i].Seconds())
	format := tickFormat(tickSteps[i], last-first > day.Seconds())
	var ticks []plot.Tick
	at := (int64(first) + step - 1) / step * step
	for ; float64(at) <= last; at += step {
		label := time.Unix(at, 0).UTC().Format(format)
		ticks = append(ticks, plot.Tick{Value: float64(at), Label: label})
	}
	return ticks
}

// tickFormat returns a format that tells marks apart that are step apart.
func tickFormat(step time.Duration, days bool) string {
	switch {
	case step >= day:
		return time.DateOnly
	case days:
		return "Jan 2 15:04"
	case step >= time.Minute:
		return "15:04"
	}
	return time.TimeOnly
}
