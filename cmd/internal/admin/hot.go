package admin

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"

	"github.com/seed-181794aa/ratelimit/cmd/internal/sketch"
	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
)

const (
	maxHot = 64 // buckets that are watched
	// maxSample bounds the sample of a bucket, and so the memory: 1 MiB in all.
	maxSample = 16 << 10
	// fadePerSecond is the factor by which scores shrink: half remains after a minute.
	fadePerSecond = 0.9885
)

// hotBuckets finds the buckets that were refused most often lately, in bounded memory. The
// score of a bucket counts its refusals and fades.
type hotBuckets struct {
	mu      sync.Mutex
	summary *sketch.Summary[hotBucket]
}

type hotBucket struct {
	rule    string
	key     []httplimit.KeyPart
	refused uint64    // since the bucket was first watched
	level   LevelFunc // nil if the level is not known
}

// LevelFunc returns the limit and the level of a bucket, or an error if there is none.
type LevelFunc func() (tb.Limit, tb.Level, error)

func newHotBuckets() *hotBuckets {
	return &hotBuckets{summary: sketch.NewSummary[hotBucket](maxHot)}
}

// bucketID returns a string that identifies a bucket. A formatted key has no newline.
func bucketID(rule string, key []httplimit.KeyPart) string {
	return rule + "\n" + httplimit.FormatKey(key)
}

func (b *hotBucket) id() string { return bucketID(b.rule, b.key) }

// add adds a refusal of a bucket. It calls level if the bucket was not watched before.
func (h *hotBuckets) add(rule string, key []httplimit.KeyPart, level func() LevelFunc) {
	id := []byte(bucketID(rule, key))
	h.mu.Lock()
	defer h.mu.Unlock()
	b, added := h.summary.See(id)
	if added {
		b.Value = hotBucket{rule: rule, key: key, level: level()}
	}
	b.Value.refused++
	b.Count++
}

// fade multiplies all scores by fadePerSecond.
func (h *hotBuckets) fade() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.summary.Scale(fadePerSecond)
}

// hottest returns copies of the buckets, the highest score first.
func (h *hotBuckets) hottest() (all []hotBucket) {
	h.mu.Lock()
	defer h.mu.Unlock()
	byScore := slices.SortedFunc(h.summary.All(), func(a, b *sketch.Entry[hotBucket]) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Key, b.Key))
	})
	for _, b := range byScore {
		all = append(all, b.Value)
	}
	return all
}

// remove removes a bucket that no longer exists, as after a change of policy.
func (h *hotBuckets) remove(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.summary.Remove(id)
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
