package admin

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
)

// The demo has the same burst against a bucket and a window.
func TestEdge(t *testing.T) {
	_, admin, _, _ := served(t)
	status, body := do(t, request(t, "GET", admin+"/api/edge", ""))
	var view edgeView
	if err := json.Unmarshal([]byte(body), &view); err != nil || status != http.StatusOK {
		t.Fatal(status, err, body)
	}
	if view.Burst != 10 || view.Window != 2 || len(view.Seconds) != 24 ||
		view.Seconds[0] != -0.096 || view.Seconds[23] != 0.088 {
		t.Errorf("%+v", view)
	}
	for name, want := range map[string]int{"token-bucket": 10, "fixed-window": 20} {
		granted := 0
		for _, g := range view.Granted[name] {
			if g {
				granted++
			}
		}
		if granted != want || len(view.Granted[name]) != 24 {
			t.Errorf("%s: %d of %d granted, want %d", name, granted, len(view.Granted[name]), want)
		}
	}
	notDemo := httptest.NewServer(New(Config{Metrics: http.NotFoundHandler()}))
	t.Cleanup(notDemo.Close)
	if status, _ := do(t, request(t, "GET", notDemo.URL+"/api/edge", "")); status != 404 {
		t.Errorf("in front of an upstream: %d", status)
	}
}
