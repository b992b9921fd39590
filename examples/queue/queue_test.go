package queue

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-181794aa/ratelimit"
)

// One worker sends the messages of two customers. The many messages of one do not hold back the
// other.
func TestEachCustomerHasItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, sent := time.Now(), map[string][]time.Duration{}
		w := &worker{ratelimit.NewTokenBucket(1, 1), func(m message) {
			sent[m.customer] = append(sent[m.customer], time.Since(began))
		}}
		type job struct {
			message
			due time.Time
		}
		var queue []job
		for _, customer := range []string{"ada", "ada", "ada", "ada", "bob"} {
			queue = append(queue, job{message{customer}, began})
		}
		for len(queue) > 0 {
			j := queue[0]
			queue = queue[1:]
			time.Sleep(time.Until(j.due))
			var later snooze
			if err := w.Work(t.Context(), j.message); errors.As(err, &later) {
				queue = append(queue, job{j.message, time.Now().Add(time.Duration(later))})
			} else if err != nil {
				t.Fatal(err)
			}
		}
		want := []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second}
		if !slices.Equal(sent["ada"], want) || !slices.Equal(sent["bob"], want[:1]) {
			t.Errorf("sent %v", sent)
		}
	})
}
