package redis

import (
	"runtime"
	"slices"
	"strconv"
	"testing"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb"
)

// busy lets as many commands be under way as may take several buckets along. Further calls wait.
func (c *crowd) busy(t *testing.T) (others []<-chan outcome) {
	t.Helper()
	for i := range maxShared {
		others = append(others, c.on("busy "+strconv.Itoa(i)).send(t.Context(), 1))
	}
	return others
}

func TestBucketsShareABatch(t *testing.T) {
	c, resume := startCrowd(t, slow)
	before := c.l.Stats().Commands
	others := c.busy(t)
	var all []<-chan outcome
	for i := range maxBuckets {
		all = append(all, c.on(strconv.Itoa(i)).join(t.Context(), i%5+1))
	}
	b := c.on("31")
	b.made = 1
	all = append(all, b.join(t.Context(), 7)) // a second call on this bucket
	last := c.on("last").join(t.Context(), 11)
	if n := c.l.Stats().Commands - before; n != maxShared {
		t.Errorf("%d commands under way, want %d", n, maxShared)
	}
	resume()
	for _, o := range others {
		wantOutcome(t, o, granted(9))
	}
	for i, o := range all[:maxBuckets] {
		wantOutcome(t, o, granted(9-i%5))
	}
	wantOutcome(t, all[maxBuckets], granted(1))
	wantOutcome(t, last, refused(tb.Never, 10))
	if n := c.l.Stats().Commands - before; n != maxShared+2 {
		t.Errorf("%d commands, want %d", n, maxShared+2)
	}
	if v, err := c.l.Level(t.Context(), "30"); err != nil || int(v.Tokens) != 9 {
		t.Errorf("%+v, %v, want 9 tokens", v, err)
	}
}

// A batch has whole queues, except for the last one, and no further one when it is full.
func TestBatchIsFilledUpToItsBounds(t *testing.T) {
	l := newLimiter(t, dial(t, redistest.Start(t)), slow)
	s := &l.pending
	s.flushes = maxShared // no other flush takes what is left
	for _, tt := range []struct{ waiting, batched []int }{
		{[]int{maxItems, 1}, []int{maxItems}},
		{[]int{maxItems + 5, 1}, []int{maxItems}},
		{[]int{100, 27, 2, 1}, []int{100, 27, 1}},
		{slices.Repeat([]int{2}, maxBuckets+1), slices.Repeat([]int{2}, maxBuckets)},
	} {
		var queues []*queue
		for i, n := range tt.waiting {
			q := &queue{node: &l.nodes[0], key: strconv.Itoa(i), buckets: 1}
			for range n {
				c := newCall(l.local(), 1)
				c.parts[0].layout = l.layout.Load()
				q.waiting = append(q.waiting, c)
			}
			s.ready = append(s.ready, q)
			queues = append(queues, q)
		}
		b := new(batch)
		l.fill(b)
		if !slices.Equal(b.queues, queues[:len(tt.batched)]) {
			t.Errorf("%d of %d queues in the batch, want %d", len(b.queues), len(queues), len(tt.batched))
		}
		for i, q := range b.queues {
			if n := len(q.batched); n != tt.batched[i] || len(q.waiting) != tt.waiting[i]-n {
				t.Errorf("%d calls of queue %d, and %d wait, want %d", n, i, len(q.waiting), tt.batched[i])
			}
		}
		s.ready = nil
	}
	s.flushes = 0
}

// What one batch cannot take goes to the server beside it.
func TestTwoBatchesAreUnderWay(t *testing.T) {
	c, resume := startCrowd(t, slow)
	before := c.l.Stats().Commands
	c.l.pending.mu.Lock()
	c.l.begin()
	c.l.pending.mu.Unlock()
	var all []<-chan outcome
	for i := range maxBuckets + 1 {
		all = append(all, c.on(strconv.Itoa(i)).join(t.Context(), 1))
	}
	go c.l.flush()
	for c.l.Stats().Commands < before+2 {
		runtime.Gosched()
	}
	resume()
	for _, o := range all {
		wantOutcome(t, o, granted(9))
	}
}

// A write that fails is an error of the calls that would change the bucket. A value that is not a
// bucket is an error of all calls.
func TestErrorOfABucketConcernsItsChanges(t *testing.T) {
	c, resume := startCrowd(t, slow, []string{"SET", "tb:{foreign}", "x"},
		[]string{"CONFIG", "SET", "maxmemory", "1"})
	first := c.send(t.Context(), 1)
	more, most := c.join(t.Context(), 4), c.join(t.Context(), 11)
	resume()
	wantCause(t, (<-first).err, CauseOutOfMemory)
	wantCause(t, (<-more).err, CauseOutOfMemory)
	if o := <-most; o.err != nil || o.Allowed || o.RetryAfter != tb.Never {
		t.Errorf("a refusal, which writes nothing: %+v", o)
	}
	_, err := c.l.Peek(t.Context(), "foreign")
	wantCause(t, err, CauseForeign)
	wantCause(t, (<-c.on("foreign").call(t.Context(), 11)).err, CauseForeign)
}
