package replay

import (
	"fmt"
	"math"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/svgchart"
)

// wholeTicks marks at most 7 whole numbers from 0 on, with steps of 1, 2, 5, 10, …
func wholeTicks(last float64) []svgchart.Tick {
	const most = 7
	step := 1.0
	for i := 0; last/step > most-1; i++ {
		step *= [...]float64{2, 2.5, 2}[i%3]
	}
	return ticks(0, last, step, func(v float64) string { return grouped(int64(v)) })
}

// ticks marks the multiples of step from first to last.
func ticks(first, last, step float64, label func(float64) string) (all []svgchart.Tick) {
	for v := math.Ceil(first/step) * step; v <= last; v += step {
		all = append(all, svgchart.Tick{Value: v, Label: label(v)})
	}
	return all
}

const day = 24 * time.Hour

// timeSteps are the possible distances between the marks of a time axis, up to two weeks. Above,
// monthSteps are the distances in months.
var timeSteps = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	day, 2 * day, 7 * day, 14 * day,
}

var monthSteps = []int{1, 3, 6, 12, 2 * 12, 5 * 12, 10 * 12, 20 * 12, 50 * 12}

// mostTicks is how many times have room for their labels.
const mostTicks = 9

// timeTicks marks round times of UTC on an axis in seconds since 1970, as many as have room for
// their labels.
func timeTicks(first, last float64) []svgchart.Tick {
	for _, step := range timeSteps {
		if (last-first)/step.Seconds() <= mostTicks {
			format := timeFormat(step, last-first > day.Seconds())
			return ticks(first, last, step.Seconds(), func(v float64) string {
				return time.Unix(int64(v), 0).UTC().Format(format)
			})
		}
	}
	return monthTicks(first, last)
}

// monthTicks marks the beginnings of months or years.
func monthTicks(first, last float64) (all []svgchart.Tick) {
	const month = 30 * day
	i := 0
	for i < len(monthSteps)-1 && (last-first)/month.Seconds()/float64(monthSteps[i]) > mostTicks {
		i++
	}
	step, format := monthSteps[i], "2006-01"
	if step%12 == 0 {
		format = "2006"
	}
	begin := time.Unix(int64(first), 0).UTC()
	months := (begin.Year()*12 + int(begin.Month()) - 1) / step * step
	for ; ; months += step {
		t := time.Date(months/12, time.Month(months%12+1), 1, 0, 0, 0, 0, time.UTC)
		switch v := float64(t.Unix()); {
		case v > last:
			return all
		case v >= first:
			all = append(all, svgchart.Tick{Value: v, Label: t.Format(format)})
		}
	}
}

// timeLabel returns the label of a time axis. It has what the marks lack: the date of a log of one
// day, or the year of several days.
func timeLabel(first, last float64) string {
	a, b := time.Unix(int64(first), 0).UTC(), time.Unix(int64(last), 0).UTC()
	switch {
	case a.Format(time.DateOnly) == b.Format(time.DateOnly):
		return "UTC, " + a.Format(time.DateOnly)
	case a.Year() == b.Year():
		return fmt.Sprintf("UTC, %d", a.Year())
	}
	return "UTC"
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
func powerTicks(first, last float64) (all []svgchart.Tick) {
	for v := powerBelow(first); v <= last*(1+1e-9); v *= 10 {
		label := fmt.Sprint(v)
		if v >= 1 {
			label = grouped(uint64(v))
		}
		all = append(all, svgchart.Tick{Value: v, Label: label})
	}
	return all
}

// powerBelow returns the greatest power of ten that is not above v.
func powerBelow(v float64) float64 { return math.Pow(10, math.Floor(math.Log10(v)+1e-9)) }

// powerAbove returns the least power of ten that is not below v.
func powerAbove(v float64) float64 { return math.Pow(10, math.Ceil(math.Log10(v)-1e-9)) }
