package adaptertest

import (
	"net/http"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Cost is a field that handlers set, and that no client gets.
const Cost = "X-Cost"

// RunResponses tests an adapter that passes responses to the limiter. The server has further
// routes:
//
//   - /cost sets Cost to 3, and answers "paid".
//   - /late sets the status 200, then Cost to 3, and has no body.
//   - /fail fails with the status 503, in the way of the framework.
//   - /stream answers "first", flushes, waits for Release, and answers "second".
func RunResponses(t *testing.T, start Start) {
	for name, test := range map[string]func(*testing.T, Start){
		"costs": costs, "bytes": countedBytes, "adaptive rates": adaptiveRates, "streams": streams,
	} {
		t.Run(name, func(t *testing.T) { test(t, start) })
	}
}

func costs(t *testing.T, start Start) {
	rule := perAddress()
	rule.Cost = httplimit.Cost{Source: "response:header:" + Cost, Default: 5, HideHeader: true}
	s := newSite(t, start, rule)
	for _, path := range []string{"/cost", "/late"} {
		response, _ := s.send(http.MethodGet, path)
		if response.StatusCode != http.StatusOK || response.Header.Get(Cost) != "" {
			t.Errorf("%s: status %d, header %v", path, response.StatusCode, response.Header)
		}
	}
	s.get("/panic") // takes the estimate
	st := s.Stats()[0]
	if st.Settled != 2 || st.Estimated != 1 || st.Table.Settled != 6 {
		t.Errorf("%d settled, %d estimated, %v tokens; want 2, 1, 6",
			st.Settled, st.Estimated, st.Table.Settled)
	}
	if left := s.remaining(); left != burst-3-3-5 {
		t.Errorf("%v tokens left, want %d", left, burst-3-3-5)
	}
}

// RunEstimates tests an adapter that does not pass responses to the limiter: the estimate of a cost
// stands, whatever the response is.
func RunEstimates(t *testing.T, start Start) {
	rule := perAddress()
	rule.Cost = httplimit.Cost{Source: "response:bytes", Default: 7}
	s := newSite(t, start, rule)
	s.wantStatus(http.StatusOK, "/")
	if left := s.remaining(); left != burst-7 || s.Stats()[0].Estimated != 1 {
		t.Errorf("%v tokens left, want %d", left, burst-7)
	}
}

// remaining returns the tokens of this machine's bucket.
func (s *site) remaining() float64 {
	r, err := http.NewRequest(http.MethodGet, "/", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.RemoteAddr = "127.0.0.1:1"
	return s.Explain(r)[0].Level.Tokens
}

func countedBytes(t *testing.T, start Start) {
	rule := perAddress()
	rule.Cost = httplimit.Cost{Source: "response:bytes", Default: 1}
	s := newSite(t, start, rule)
	s.wantStatus(http.StatusOK, "/")
	if left := s.remaining(); left != burst-float64(len("hello")) {
		t.Errorf("%v tokens left, want %d", left, burst-len("hello"))
	}
}

// adaptiveRates requires that the limiter sees the status of a failure.
func adaptiveRates(t *testing.T, start Start) {
	for path, falls := range map[string]bool{"/": false, "/fail": true} {
		s := newSite(t, start, httplimit.Rule{
			Name: "all", Limit: tb.Limit{Capacity: 100, Tokens: 100, Per: time.Second},
			Adaptive: httplimit.Adaptive{Min: 10, Max: 1000, TargetP99: 200 * time.Millisecond},
		})
		for range 400 {
			s.passed.Add(int64(10 * time.Millisecond))
			s.get(path)
		}
		limit := s.Stats()[0].Limit
		if rate := float64(limit.Tokens) / limit.Per.Seconds(); rate < 100 != falls {
			t.Errorf("%s: %v tokens a second", path, rate)
		}
	}
}

// streams requires that the client gets the first part of a response before the handler ends.
func streams(t *testing.T, start Start) {
	rule := perAddress()
	rule.Cost = httplimit.Cost{Source: "response:bytes", Default: 1}
	s := newSite(t, start, rule)
	url := "http://" + s.address + "/stream"
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	part := make([]byte, 100)
	n, err := response.Body.Read(part)
	if err != nil || string(part[:n]) != "first" {
		t.Fatalf("%q, %v", part[:n], err)
	}
	close(s.release)
	rest := 0
	for err == nil {
		n, err = response.Body.Read(part)
		rest += n
	}
	if left := s.remaining(); rest != len("second") || left != burst-float64(len("firstsecond")) {
		t.Errorf("%d further bytes, %v tokens left", rest, left)
	}
}
