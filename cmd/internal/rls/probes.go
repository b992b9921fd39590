package rls

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
)

// upstreamName is the name under which envoyproxy/ratelimit reports its health.
const upstreamName = "ratelimit"

// probes returns the paths of envoyproxy/ratelimit by HTTP, which charts and scripts call.
func (r *runner) probes() map[string]http.HandlerFunc {
	all := map[string]http.HandlerFunc{
		"GET /healthcheck": r.serveHealth,
		"POST /json":       r.serveJSON,
		"GET /rlconfig":    r.serveConfig,
	}
	for _, other := range []string{"GET", "PUT", "PATCH", "DELETE"} { // GET / is the live page
		all[other+" /json"] = wantPOST
	}
	return all
}

// serveHealth answers 200 while the service takes requests, and 500 from the beginning of its stop.
func (r *runner) serveHealth(w http.ResponseWriter, q *http.Request) {
	health, err := r.server.health.Check(q.Context(), &grpc_health_v1.HealthCheckRequest{})
	if err != nil || health.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		http.Error(w, "the service stops, or has no configuration yet", http.StatusInternalServerError)
		return
	}
	_, _ = io.WriteString(w, "OK") // this fails only if the client is gone
}

// serveJSON decides a request in JSON. The status is 200 if it is granted, and 429 if it is
// refused.
func (r *runner) serveJSON(w http.ResponseWriter, q *http.Request) {
	text, err := io.ReadAll(http.MaxBytesReader(w, q.Body, maxMessage))
	var request ratelimit.RateLimitRequest
	if err == nil {
		err = protojson.Unmarshal(text, &request)
	}
	if err != nil {
		code := http.StatusBadRequest
		if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
			code = http.StatusRequestEntityTooLarge
		}
		http.Error(w, err.Error(), code)
		return
	}
	answer, err := r.service.ShouldRateLimit(q.Context(), &request)
	if err != nil {
		code := http.StatusInternalServerError
		if status.Code(err) == codes.InvalidArgument {
			code = http.StatusBadRequest
		}
		http.Error(w, status.Convert(err).Message(), code)
		return
	}
	text, err = protojson.Marshal(answer)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if answer.GetOverallCode() == ratelimit.RateLimitResponse_OVER_LIMIT {
		w.WriteHeader(http.StatusTooManyRequests)
	}
	_, _ = w.Write(text)
}

// wantPOST answers a request to /json by another method than POST.
func wantPOST(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Allow", http.MethodPost)
	http.Error(w, `want POST with a RateLimitRequest in JSON, such as {"domain": "d", "descriptors": `+
		`[{"entries": [{"key": "k", "value": "v"}]}]}`, http.StatusMethodNotAllowed)
}

// serveConfig lists the rules in force, one on a line.
func (r *runner) serveConfig(w http.ResponseWriter, _ *http.Request) {
	for _, rule := range r.service.state.Load().config.Rules {
		unit := "unlimited"
		if !rule.Unlimited {
			unit = fmt.Sprintf("unit=%s requests_per_unit=%d", rule.Unit, rule.RequestsPerUnit)
		}
		fmt.Fprintf(w, "%s.%s: %s, shadow_mode: %t, quota_mode: %t\n", rule.Domain, rule.Path, unit,
			rule.Shadow, rule.Quota)
	}
}
