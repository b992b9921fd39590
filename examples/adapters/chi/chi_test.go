package chi

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/proof/facetest"
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

func TestURLParam(t *testing.T) {
	l, err := httplimit.New(httplimit.Rules(httplimit.Rule{
		Name: "per-tenant", Keys: []string{"tenant"}, OnMissing: httplimit.Reject,
		Limit: tb.Limit{Capacity: 1, Tokens: 1, Per: time.Hour},
	}), URLParam("tenant"))
	if err != nil {
		t.Fatal(err)
	}
	ok := func(http.ResponseWriter, *http.Request) {}
	behind, before := chi.NewRouter(), chi.NewRouter()
	behind.With(l.Middleware).Get("/tenants/{tenant}", ok)
	before.Use(l.Middleware) // before the route, which has the parameter
	before.Get("/tenants/{tenant}", ok)
	for _, request := range []struct {
		router *chi.Mux
		path   string
		want   int
	}{
		{behind, "/tenants/blue", http.StatusOK}, {behind, "/tenants/blue", http.StatusTooManyRequests},
		{behind, "/tenants/%62lue", http.StatusTooManyRequests}, // chi has "%62lue"
		{behind, "/tenants/100%25", http.StatusOK},              // chi has "100%"
		{behind, "/tenants/%31%30%30%25", http.StatusTooManyRequests},
		{before, "/tenants/green", http.StatusBadRequest},
	} {
		w := httptest.NewRecorder()
		request.router.ServeHTTP(w, httptest.NewRequest(http.MethodGet, request.path, nil))
		if w.Code != request.want {
			t.Errorf("%s: status %d, want %d", request.path, w.Code, request.want)
		}
	}
}
