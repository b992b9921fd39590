package admin

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

func event(key string) httplimit.Event {
	return httplimit.Event{
		Decision: httplimit.Decision{Rule: "r"}, Key: []httplimit.KeyPart{{Name: "k", Value: key}},
	}
}

func names(buckets []bucket) (all string) {
	for _, b := range buckets {
		all += fmt.Sprint(strings.TrimPrefix(b.key, "k="), b.refused, " ")
	}
	return all
}

// The most refused are found among many more keys than are watched.
func TestHotIsBounded(t *testing.T) {
	h := newHot()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for i := range 100 * maxHot {
		h.refused(r, event(fmt.Sprint("once", i)))
		if i%3 == 0 {
			h.refused(r, event("often"))
		}
		if i%4 == 0 {
			h.refused(r, event("second"))
		}
		if len(h.buckets) > maxHot {
			t.Fatalf("%d buckets", len(h.buckets))
		}
	}
	if got := names(h.most(2)); got != "often2134 second1600 " {
		t.Error(got)
	}
}

// Who was refused a while ago makes room for who is now.
func TestHotFades(t *testing.T) {
	h := newHot()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for range 10 {
		h.refused(r, event("before"))
	}
	for range 600 {
		h.fade()
	}
	h.refused(r, event("now"))
	if got := names(h.most(2)); got != "now1 before10 " {
		t.Error(got)
	}
	h.drop(bucketID{"r", "k=now"})
	if got := names(h.most(2)); got != "before10 " {
		t.Error(got)
	}
}

// Of a huge request nothing is kept.
func TestSample(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/x?y=z", strings.NewReader("body"))
	r.Header = http.Header{"X-Api-Key": {"k1"}}
	if s := sample(r); s.URL.RawQuery != "y=z" || s.Header.Get("X-Api-Key") != "k1" || s.Body != nil {
		t.Error(s)
	}
	r.Header.Set("Cookie", strings.Repeat("x", maxSample))
	if sample(r) != nil {
		t.Error("kept")
	}
}

func TestHistory(t *testing.T) {
	h := newHistory()
	id := ruleID{"", "r"}
	at := func(granted, refused, shadow uint64) {
		h.add([]httplimit.RuleStats{{Rule: "r", Granted: granted, Refused: refused,
			ShadowRefused: shadow}})
	}
	last := func(n int) string {
		granted, refused := h.of(id)
		if len(granted) != seconds || len(refused) != seconds {
			t.Fatalf("%d and %d seconds", len(granted), len(refused))
		}
		return fmt.Sprint(granted[seconds-n:], refused[seconds-n:])
	}
	at(5, 0, 0)
	at(8, 2, 0)
	at(8, 2, 4)
	if got := last(4); got != "[0 5 3 0] [0 0 2 4]" {
		t.Error(got)
	}
	at(1, 0, 0) // another rule of this name
	if got := last(2); got != "[0 1] [4 0]" {
		t.Error(got)
	}
	for range seconds - 1 {
		at(1, 0, 0)
	}
	if granted, _ := h.of(id); granted[0] != 1 || granted[1] != 0 {
		t.Error(granted)
	}
	h.add(nil)
	if len(h.rules) != 0 {
		t.Error("a rule that is gone is kept")
	}
}
