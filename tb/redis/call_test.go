package redis

import (
	"math/bits"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
)

// unconnected is a client without a connection.
type unconnected struct{ rueidis.Client }

// Mode implements rueidis.Client.
func (unconnected) Mode() rueidis.ClientMode { return rueidis.ClientModeStandalone }

// Each call ends a microsecond after its timeout, however old the limiter is. Calls that began
// before the first one has timed out show no other failure.
func TestCallsTimeOutInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := New(unconnected{}, slow, WithTimeout(50*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		for round := range 3 {
			var calls []*call
			for range 3 {
				for range failuresInARow {
					c := &call{
						node: &l.nodes[0], timeout: l.local() + l.timeout.Microseconds(),
						decided: make(chan struct{}, 1),
					}
					l.pending.mu.Lock()
					l.add(c)
					l.pending.mu.Unlock()
					calls = append(calls, c)
				}
				time.Sleep(10 * time.Millisecond)
			}
			for i, c := range calls {
				<-c.decided
				wantCause(t, c.err, CauseTimeout)
				if late := l.local() - c.timeout; late != 1 {
					t.Errorf("call %d ended %d µs after its timeout, want 1", i, late)
				}
			}
			b := &l.nodes[0].breaker
			if n := bits.OnesCount32(b.failures); n != round+1 || b.opened > 0 {
				t.Errorf("%d failures, want %d", n, round+1)
			}
		}
	})
}
