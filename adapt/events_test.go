package adapt_test

import (
	"slices"
	"sort"
	"time"
)

// events is the future, in the order of time. Of two events at one instant the first added is the
// first.
type events struct {
	now  time.Duration
	list []event
}

// event is something that happens at an instant.
type event struct {
	at     time.Duration
	happen func()
}

// add plans an event.
func (e *events) add(at time.Duration, happen func()) {
	i := sort.Search(len(e.list), func(i int) bool { return e.list[i].at > at })
	e.list = slices.Insert(e.list, i, event{at, happen})
}

// until lets all events before an instant happen.
func (e *events) until(end time.Duration) {
	for len(e.list) > 0 && e.list[0].at < end {
		next := e.list[0]
		e.list = e.list[1:]
		e.now = next.at
		next.happen()
	}
}
