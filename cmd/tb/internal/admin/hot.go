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
	// maxHot is how many buckets are watched. Finding the least of them takes the time of
	// a system call or less, and happens only when another key is refused.
	maxHot = 64
	// maxSample bounds what is kept of a request, and so the memory: 1 MiB in all.
	maxSample = 16 << 10
	// fading is by how much a refusal counts less a second later: half after a minute.
	fading = 0.9885
)

// hot finds the buckets that were refused most lately, in bounded memory: the Space-Saving
// algorithm of Metwally, Agrawal and El Abbadi, with counts that fade. A bucket that is not
// watched takes the place of the one with the lowest score and inherits that, so whatever
// has more than one in maxHot of the refusals is watched.
type hot struct {
	mu      sync.Mutex
	buckets map[bucketID]*bucket
}

// bucketID is the names that decisions have for a bucket.
type bucketID struct{ rule, key string }

type bucket struct {
	bucketID
	score   float64
	refused uint64        // since it is watched
	sample  *http.Request // with which the limiter can be asked how full it is; may be nil
}

func newHot() *hot { return &hot{buckets: map[bucketID]*bucket{}} }

func (h *hot) refused(r *http.Request, e httplimit.Event) {
	id := bucketID{e.Rule, httplimit.FormatKey(e.Key)}
	h.mu.Lock()
	defer h.mu.Unlock()
	b := h.buckets[id]
	if b == nil {
		b = &bucket{bucketID: id, sample: sample(r)}
		if len(h.buckets) >= maxHot {
			least := h.least()
			b.score = least.score
			delete(h.buckets, least.bucketID)
		}
		h.buckets[id] = b
	}
	b.refused++
	b.score++
}

func (h *hot) least() (least *bucket) {
	for _, b := range h.buckets {
		if least == nil || b.score < least.score {
			least = b
		}
	}
	return least
}

// fade makes what was a second ago count less.
func (h *hot) fade() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, b := range h.buckets {
		b.score *= fading
	}
}

// most returns copies of up to n buckets, the hottest first.
func (h *hot) most(n int) []bucket {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]bucket, 0, len(h.buckets))
	for _, b := range h.buckets {
		all = append(all, *b)
	}
	slices.SortFunc(all, func(a, b bucket) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.rule, b.rule),
			cmp.Compare(a.key, b.key))
	})
	return all[:min(n, len(all))]
}

// drop forgets a bucket of which there is none any more, as after a change of policy.
func (h *hot) drop(id bucketID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.buckets, id)
}

// sample returns what a limiter looks at in a request, or nil if that is too much to keep.
func sample(r *http.Request) *http.Request {
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
