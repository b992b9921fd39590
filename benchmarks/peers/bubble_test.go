package peers

import (
	"testing"
	"testing/synctest"
	"time"
)

// bubble is a test inside testing/synctest, where time passes only in a sleep. A limiter
// that accepts a time gets it from now, which, unlike the clock of synctest, can go back.
type bubble struct {
	*testing.T
	epoch  time.Time
	behind time.Duration // from now to the clock of synctest
}

// inBubble runs f at half a second past a whole second, because a clock is rarely on one.
func inBubble(t *testing.T, f func(b *bubble)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Second / 2)
		f(&bubble{T: t, epoch: time.Now()})
	})
}

func (b *bubble) now() time.Time { return time.Now().Add(-b.behind) }

// reading returns the time since the epoch.
func (b *bubble) reading() time.Duration { return b.now().Sub(b.epoch) }

// set makes reading return d.
func (b *bubble) set(d time.Duration) {
	passes := d - time.Since(b.epoch)
	b.behind = max(0, -passes)
	time.Sleep(passes)
}

func (b *bubble) advance(d time.Duration) { b.set(b.reading() + d) }
