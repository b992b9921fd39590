package cas

import (
	"context"
	"runtime"
	"testing"

	"github.com/seed-181794aa/ratelimit/tb"
)

// A peek finds no key, waits for the insert that is adding it, and looks again.
func TestPeekSeesTheKeyThatIsBeingAdded(t *testing.T) {
	f := newFake(t)
	peeked := make(chan tb.Decision, 1)
	f.table.Init(1, false, &stopped{ledger: f.ledger, after: func() {
		go func() {
			d, _ := f.Peek(context.Background(), "new")
			peeked <- d
		}()
		for range 1000 {
			runtime.Gosched()
		}
	}})
	f.granted("victim", 10)
	f.granted("new", 4)
	if got, want := <-peeked, (tb.Decision{Allowed: true, Remaining: 5}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
