package admin

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
)

const (
	maxHot        = 64       // buckets that are watched
	maxSample     = 16 << 10 // bytes of a request, and so 1 MiB in all
	fadePerSecond = 0.9885   // so that half of a score remains after a minute
)

// hotBuckets finds the buckets that were refused most often lately, in bounded memory. The score of
// a bucket counts its refusals and fades. A new bucket takes the place of the one with the lowest
// score, and inherits it, because that many of its own refusals may have been missed. So each
// bucket with more than 1/maxHot of all refusals is watched (A. Metwally, D. Agrawal, A. El Abbadi,
// "Efficient Computation of Frequent and Top-k Elements in Data Streams", ICDT 2005).
type hotBuckets struct {
	mu       sync.Mutex
	byID     map[string]*hotBucket
	refusals uint64
}

type hotBucket struct {
	id      string // of bucketID, which takes long if the key is
	rule    string
	key     []httplimit.KeyPart
	refused uint64    // since the bucket was first watched
	level   LevelFunc // nil if the level is not known
	score   float64
	latest  uint64 // the number of its latest refusal among all
}

// LevelFunc returns the limit and the level of a bucket, or an error if there is none.
type LevelFunc func() (tb.Limit, tb.Level, error)

func newHotBuckets() *hotBuckets {
	return &hotBuckets{byID: make(map[string]*hotBucket, maxHot)}
}

// bucketID returns a string that identifies a bucket. A formatted key has no newline.
func bucketID(rule string, key []httplimit.KeyPart) string {
	return rule + "\n" + httplimit.FormatKey(key)
}

// add adds a refusal of a bucket. It calls level if the bucket was not watched before.
func (h *hotBuckets) add(rule string, key []httplimit.KeyPart, level func() LevelFunc) {
	id := bucketID(rule, key)
	h.mu.Lock()
	defer h.mu.Unlock()
	b := h.byID[id]
	if b == nil {
		b = &hotBucket{id: id, rule: rule, key: key, level: level()}
		if len(h.byID) == maxHot {
			b.score = h.dropLowest()
		}
		h.byID[id] = b
	}
	h.refusals++
	b.refused, b.score, b.latest = b.refused+1, b.score+1, h.refusals
}

// dropLowest drops the bucket with the lowest score, among equals the one that was not refused for
// the longest time, and returns the score.
func (h *hotBuckets) dropLowest() float64 {
	var lowest *hotBucket
	for _, b := range h.byID {
		if lowest == nil || b.score < lowest.score ||
			b.score == lowest.score && b.latest < lowest.latest {
			lowest = b
		}
	}
	delete(h.byID, lowest.id)
	return lowest.score
}

func (h *hotBuckets) fade() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, b := range h.byID {
		b.score *= fadePerSecond
	}
}

// hottest returns copies of the buckets, the highest score first.
func (h *hotBuckets) hottest() (all []hotBucket) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, b := range h.byID {
		all = append(all, *b)
	}
	slices.SortFunc(all, func(a, b hotBucket) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id, b.id))
	})
	return all
}

func (h *hotBuckets) remove(id string) {
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
