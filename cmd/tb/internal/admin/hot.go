package admin

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

const (
	// maxHot is how many buckets are watched. Finding the one with the lowest score takes
	// about as long as a system call, and happens only when a key that is not watched is
	// refused.
	maxHot = 64
	// maxSample bounds the sample of a bucket, and so the memory: 1 MiB in all.
	maxSample = 16 << 10
	// fadePerSecond is the factor by which scores shrink: half remains after a minute.
	fadePerSecond = 0.9885
)

// hotBuckets finds the buckets that were refused most often lately, in bounded memory. It is
// the Space-Saving algorithm of Metwally, Agrawal and El Abbadi (2005), with scores that
// fade. A new bucket replaces the bucket with the lowest score and inherits that score, so
// every bucket with more than one in maxHot of the refusals is watched.
type hotBuckets struct {
	mu   sync.Mutex
	byID map[bucketID]*hotBucket
}

// bucketID identifies a bucket: the name of its rule and its formatted key.
type bucketID struct{ rule, key string }

func newBucketID(rule string, key []httplimit.KeyPart) bucketID {
	return bucketID{rule, httplimit.FormatKey(key)}
}

type hotBucket struct {
	id      bucketID
	key     []httplimit.KeyPart
	score   float64
	refused uint64        // since the bucket is watched
	sample  *http.Request // to ask the limiter for the level; nil if it was too large
}

func newHotBuckets() *hotBuckets { return &hotBuckets{byID: map[bucketID]*hotBucket{}} }

func (h *hotBuckets) addRefusal(r *http.Request, e httplimit.Event) {
	id := newBucketID(e.Rule, e.Key)
	h.mu.Lock()
	defer h.mu.Unlock()
	b := h.byID[id]
	if b == nil {
		b = &hotBucket{id: id, key: e.Key, sample: newSample(r)}
		if len(h.byID) >= maxHot {
			coldest := h.coldest()
			b.score = coldest.score
			delete(h.byID, coldest.id)
		}
		h.byID[id] = b
	}
	b.refused++
	b.score++
}

func (h *hotBuckets) coldest() (coldest *hotBucket) {
	for _, b := range h.byID {
		if coldest == nil || b.score < coldest.score {
			coldest = b
		}
	}
	return coldest
}

// fade reduces all scores by one second's share.
func (h *hotBuckets) fade() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, b := range h.byID {
		b.score *= fadePerSecond
	}
}

// hottest returns copies of the buckets, the hottest first.
func (h *hotBuckets) hottest() []hotBucket {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]hotBucket, 0, len(h.byID))
	for _, b := range h.byID {
		all = append(all, *b)
	}
	slices.SortFunc(all, func(a, b hotBucket) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id.rule, b.id.rule),
			cmp.Compare(a.id.key, b.id.key))
	})
	return all
}

// remove removes a bucket that no longer exists, as after a change of policy.
func (h *hotBuckets) remove(id bucketID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.byID, id)
}

// newSample returns a copy of what a limiter reads of a request, or nil if it is too large.
func newSample(r *http.Request) *http.Request {
	size := len(r.URL.RawQuery) + len(r.URL.Path) + len(r.Host)
	for name, values := range r.Header {
		for _, v := range values {
			size += len(name) + len(v)
		}
	}
	if size > maxSample {
		return nil
	}
	c := r.Clone(context.Background())
	c.Body = nil
	return c
}
