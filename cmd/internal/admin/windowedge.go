package admin

import (
	"net/http"

	"github.com/seed-181794aa/ratelimit/cmd/internal/algorithm"
)

// edgeView has the decisions of two algorithms on the same burst at the edge of a window. It is
// computed: no request reaches the proxy.
type edgeView struct {
	Burst   int               `json:"burst"`
	Window  float64           `json:"window"`  // in seconds
	Seconds []float64         `json:"seconds"` // of each request, after the edge
	Granted map[string][]bool `json:"granted"` // by the name of the algorithm
}

// newEdgeView returns the decisions of a token bucket and a fixed window.
func newEdgeView() (*edgeView, error) {
	limit, err := algorithm.NewLimit(algorithm.Demo)
	if err != nil {
		return nil, err
	}
	v := &edgeView{
		Burst: algorithm.Demo.Capacity, Window: limit.Window().Seconds(),
		Granted: make(map[string][]bool),
	}
	instants, edge := algorithm.BurstAtEdge()
	for _, instant := range instants {
		v.Seconds = append(v.Seconds, float64(int64(instant-edge))/1e9)
	}
	for _, name := range []string{"token-bucket", "fixed-window"} {
		results, err := algorithm.Play(name, instants)
		if err != nil {
			return nil, err
		}
		for _, result := range results {
			v.Granted[name] = append(v.Granted[name], result.Granted)
		}
	}
	return v, nil
}

func serveEdge(w http.ResponseWriter, _ *http.Request) {
	view, err := newEdgeView()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	writeJSON(w, view)
}
