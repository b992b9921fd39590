package admin

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

func refuse(h *hotBuckets, key string) {
	h.add("r", []httplimit.KeyPart{{Name: "k", Value: key}}, func() LevelFunc { return nil })
}

func names(buckets []hotBucket) (all string) {
	for _, b := range buckets {
		all += fmt.Sprint(b.key[0].Value, b.refused, " ")
	}
	return all
}

// The buckets with the most refusals are found among many more than are watched. Refusals wait
// meanwhile, so no key is formatted.
func TestHotBucketsAreBounded(t *testing.T) {
	h := newHotBuckets()
	for i := range 100 * maxHot {
		refuse(h, fmt.Sprint("once", i))
		if i%3 == 0 {
			refuse(h, "often")
		}
		if i%4 == 0 {
			refuse(h, "second")
		}
		if len(h.byID) > maxHot {
			t.Fatalf("%d buckets", len(h.byID))
		}
	}
	var hottest []hotBucket
	allocations := testing.AllocsPerRun(1, func() { hottest = h.hottest() })
	if got := names(hottest[:2]); got != "often2134 second1600 " || allocations > maxHot {
		t.Error(got, allocations)
	}
}

// Each bucket with more than its part of all refusals is watched, and no score is too low, or too
// high by more than that part.
func TestHotBucketsOfASkewedLoad(t *testing.T) {
	const all = 30_000
	for seed := range uint64(10) {
		zipf := rand.NewZipf(rand.New(rand.NewPCG(seed, 0)), 1.1, 2, 5000)
		h, refused := newHotBuckets(), make(map[string]float64)
		for range all {
			key := fmt.Sprint(zipf.Uint64())
			refuse(h, key)
			refused[key]++
		}
		for _, b := range h.hottest() {
			n := refused[b.key[0].Value]
			if b.score < n || b.score-float64(b.refused) > all/maxHot || float64(b.refused) > n {
				t.Errorf("seed %d: %+v of %v refusals", seed, b, n)
			}
			delete(refused, b.key[0].Value)
		}
		for key, n := range refused {
			if n > all/maxHot {
				t.Errorf("seed %d: %s with %v of %d refusals is not watched", seed, key, n, all)
			}
		}
	}
}

// A bucket refused now ranks above one that was refused more often some time ago.
func TestScoresFade(t *testing.T) {
	h := newHotBuckets()
	for range 10 {
		refuse(h, "before")
	}
	for range 600 {
		h.fade()
	}
	refuse(h, "now")
	if got := names(h.hottest()[:2]); got != "now1 before10 " {
		t.Error(got)
	}
	h.remove("r\nk=now")
	if got := names(h.hottest()); got != "before10 " {
		t.Error(got)
	}
}

// A huge request is not kept as a sample.
func TestNewSample(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/x?y=z", strings.NewReader("body"))
	r.Header = http.Header{"X-Api-Key": {"k1"}}
	s := newSample(r)
	if s.URL.RawQuery != "y=z" || s.Header.Get("X-Api-Key") != "k1" || s.Body != nil {
		t.Error(s)
	}
	r.Header.Set("Cookie", strings.Repeat("x", maxSample))
	if newSample(r) != nil {
		t.Error("a sample of a huge request was kept")
	}
}
