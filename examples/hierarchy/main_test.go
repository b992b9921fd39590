package main

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestRefusalNamesTheLevelThatBinds(t *testing.T) {
	var got strings.Builder
	if err := run(&got); err != nil {
		t.Fatal(err)
	}
	const want = `
0s    ada of acme to 10: granted, 0 left for the user
0s    ada of acme to 1: refused by the user for 1s
0s    bob of acme to 10: granted in 50ms, 0 left for the user
0s    cy of acme to 10: refused by the tenant for 1s
0s    ada of beta to 10: refused by the gateway for 50ms
100ms ada of beta to 10: granted, 0 left for the user
100ms bob of beta to 4: granted in 50ms, 2 left for the relay
200ms cy of beta to 6: refused by the relay for 300ms
500ms cy of beta to 6: granted, 0 left for the relay
`
	if "\n"+got.String() != want {
		t.Errorf("got\n%swant%s", &got, want)
	}
}

// Many users send at the same time. Each goroutine tries again after a refusal, and sends its
// granted messages after their delay. No slot of the gateway is lost.
func TestGatewayGetsNoBursts(t *testing.T) { synctest.Test(t, noBursts) }

func noBursts(t *testing.T) {
	const senders, messages = 16, 4
	q, err := newQuota(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	sent := make(chan time.Time, senders*messages)
	var all sync.WaitGroup
	for i := range senders {
		all.Go(func() {
			from := sender{"tenant " + strconv.Itoa(i%4), "user " + strconv.Itoa(i)}
			for range messages {
				v, err := q.take(from, 1)
				for ; err == nil && !v.Allowed; v, err = q.take(from, 1) {
					time.Sleep(v.RetryAfter)
				}
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(v.delay)
				sent <- time.Now()
			}
		})
	}
	all.Wait()
	close(sent)
	if len(sent) != cap(sent) {
		t.Fatalf("%d messages sent, want %d", len(sent), cap(sent))
	}
	last := <-sent
	for at := range sent {
		if gap := at.Sub(last); gap != 50*time.Millisecond {
			t.Errorf("a message is sent %v after the one before, want 50ms", gap)
		}
		last = at
	}
}
