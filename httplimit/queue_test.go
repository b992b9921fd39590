package httplimit

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// delaying returns a rule of 10 tokens a second with this burst that delays by up to 500 ms.
func delaying(name, keys string, burst int, more string) string {
	if more != "" {
		more = ", " + more
	}
	return sprintf(`{"name": %q, "limit_keys": %s, "algorithm_config": {"rps": 10, "burst": %d},
		"on_limit": "delay", "max_delay": "500ms"%s}`, name, keys, burst, more)
}

// queue is a server whose limiter has the clock of a synctest bubble.
type queue struct {
	*Limiter
	t       *testing.T
	handler http.Handler
	start   time.Time
	pending sync.WaitGroup

	mu   sync.Mutex
	seen []string // when each request was served or answered, in ms, and what happened
}

func newQueue(t *testing.T, policy string, opts ...Option) *queue {
	t.Helper()
	q := &queue{t: t, start: time.Now()}
	q.Limiter = mustNew(t, policy, append(opts, steady())...)
	q.handler = q.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		q.note("served " + r.URL.Path[1:])
	}))
	return q
}

func (q *queue) note(what string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.seen = append(q.seen, sprintf("%d %s", time.Since(q.start).Milliseconds(), what))
}

// send sends a request for a path, and returns when it is served, answered or waits.
func (q *queue) send(ctx context.Context, path string, lines ...string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := request(append([]string{"/" + path}, lines...)...).WithContext(ctx)
	q.pending.Go(func() {
		q.handler.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			q.note(sprintf("%d %s", w.Code, path))
		}
	})
	synctest.Wait()
	return w
}

func (q *queue) get(path string, lines ...string) *httptest.ResponseRecorder {
	return q.send(context.Background(), path, lines...)
}

// saw waits for all requests, and wants these events. Their order does not matter, because each has
// its time.
func (q *queue) saw(want ...string) {
	q.t.Helper()
	q.pending.Wait()
	slices.Sort(q.seen)
	slices.Sort(want)
	if !slices.Equal(q.seen, want) {
		q.t.Errorf("got %q, want %q", q.seen, want)
	}
	if n := q.waits.count.Load(); n != 0 {
		q.t.Errorf("%d requests wait", n)
	}
}

// counted wants these counts of a rule: granted, refused, delayed, waiting and hung up.
func (q *queue) counted(rule int, want ...int) {
	q.t.Helper()
	s := q.Stats()[rule]
	got := []int{int(s.Granted), int(s.Refused), int(s.Delayed), s.Waiting, int(s.HungUp)}
	if !slices.Equal(got, want) {
		q.t.Errorf("%s: granted, refused, delayed, waiting, hung up: %d, want %d", s.Rule, got, want)
	}
}
