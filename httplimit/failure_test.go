package httplimit

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

var errDown = errors.New("store is down")

// A client can choose the deadline of a request, for example with Grpc-Timeout, and can disconnect.
// A store that honours its context must not fail because of that: the request would pass.
func TestClientsDoNotChooseTheTimeLimitOfAStore(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	for name, opts := range map[string][]Option{
		"memory":        nil,
		"store":         {WithStore(referenceStore{t: t})},
		"patient store": {WithStore(referenceStore{t: t, patient: true}), WithTimeout(0)},
	} {
		s := newSite(t, jsonRule("r", "[]", 2, ""), opts...)
		for i, ctx := range []context.Context{canceled, late, canceled, late} {
			w := s.send(request().WithContext(ctx))
			if want := []int{200, 200, 429, 429}[i]; w.Code != want {
				t.Errorf("%s, request %d: status %d, want %d", name, i, w.Code, want)
			}
		}
	}
}

// stuckStore answers when its context ends.
type stuckStore struct {
	referenceStore
	seen *context.Context
}

func (s stuckStore) TakeAll(
	ctx context.Context, _ time.Time, _ []tb.Charge, _ []tb.Decision,
) ([]tb.Decision, bool, error) {
	*s.seen = ctx
	<-ctx.Done()
	return nil, false, ctx.Err()
}

// A store that does not answer in time has failed. It sees the values of the request's context.
func TestTimeLimitOfAStore(t *testing.T) {
	type key struct{}
	for want, opts := range map[time.Duration][]Option{
		defaultTimeout: nil, time.Minute: {WithTimeout(time.Minute)},
	} {
		synctest.Test(t, func(t *testing.T) {
			var seen context.Context
			s := newSite(t, jsonRule("r", "[]", 2, ""),
				append(opts, WithStore(stuckStore{seen: &seen}))...)
			start := time.Now()
			w := s.send(request().WithContext(context.WithValue(t.Context(), key{}, "v")))
			if waited := time.Since(start); w.Code != http.StatusOK || waited != want {
				t.Errorf("status %d after %v", w.Code, waited)
			}
			if v := seen.Value(key{}); v != "v" || s.Stats()[0].Errors != 1 {
				t.Errorf("the store sees the value %v", v)
			}
		})
	}
}
