package chi

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/httplimit/facetest"
	"github.com/seed-181794aa/ratelimit/tb"
)

func TestFace(t *testing.T) {
	facetest.Run(t, facetest.HTTP(func(t *testing.T, l *httplimit.Limiter) string {
		router := chi.NewRouter()
		router.Use(l.Middleware)
		router.Handle("/*", facetest.Application())
		return facetest.Serve(t, router)
	}))
}

// tenants returns a router with a limiter of one request for each tenant. It counts the requests
// that were served.
func tenants(
	t *testing.T, served *int, use func(chi.Router, *httplimit.Limiter, http.HandlerFunc),
) http.Handler {
	l, err := httplimit.New(httplimit.Rules(httplimit.Rule{
		Name: "per-tenant", Keys: []string{"tenant"}, OnMissing: httplimit.Reject,
		Limit: tb.Limit{Capacity: 1, Tokens: 1, Per: time.Hour},
	}), URLParam("tenant"))
	if err != nil {
		t.Fatal(err)
	}
	router := chi.NewRouter()
	use(router, l, func(http.ResponseWriter, *http.Request) { *served++ })
	return router
}

func status(h http.Handler, path string) int {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code
}

func TestURLParam(t *testing.T) {
	for name, use := range map[string]func(chi.Router, *httplimit.Limiter, http.HandlerFunc){
		"with": func(r chi.Router, l *httplimit.Limiter, h http.HandlerFunc) {
			r.With(l.Middleware).Get("/tenants/{tenant}", h)
		},
		"route": func(r chi.Router, l *httplimit.Limiter, h http.HandlerFunc) {
			r.Route("/tenants/{tenant}", func(r chi.Router) { r.Use(l.Middleware); r.Get("/", h) })
		},
	} {
		var served int
		h := tenants(t, &served, use)
		for _, request := range []struct {
			path string
			want int
		}{
			{"/tenants/blue", http.StatusOK}, {"/tenants/blue", http.StatusTooManyRequests},
			{"/tenants/red", http.StatusOK}, {"/tenants/red", http.StatusTooManyRequests},
			{"/tenants/%62lue", http.StatusTooManyRequests}, // chi has "%62lue"
			{"/tenants/b%6Cue", http.StatusTooManyRequests},
			{"/tenants/100%25", http.StatusOK}, // chi has "100%"
			{"/tenants/100%25", http.StatusTooManyRequests},
			{"/tenants/%31%30%30%25", http.StatusTooManyRequests},
		} {
			if got := status(h, request.path); got != request.want {
				t.Errorf("%s: %s: status %d, want %d", name, request.path, got, request.want)
			}
		}
		if served != 3 {
			t.Errorf("%s: %d requests were served, want 3", name, served)
		}
	}
}

// A limiter before the route does not have the parameter.
func TestURLParamBeforeTheRoute(t *testing.T) {
	var served int
	h := tenants(t, &served, func(r chi.Router, l *httplimit.Limiter, h http.HandlerFunc) {
		r.Use(l.Middleware)
		r.Get("/tenants/{tenant}", h)
	})
	if got := status(h, "/tenants/blue"); got != http.StatusBadRequest || served != 0 {
		t.Errorf("status %d, %d served", got, served)
	}
}
