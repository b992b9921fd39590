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

func status(h http.Handler, path string) int {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code
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
	for _, request := range []struct {
		path string
		want int
	}{
		{"/tenants/blue", http.StatusOK}, {"/tenants/blue", http.StatusTooManyRequests},
		{"/tenants/%62lue", http.StatusTooManyRequests}, // chi has "%62lue"
		{"/tenants/100%25", http.StatusOK},              // chi has "100%"
		{"/tenants/%31%30%30%25", http.StatusTooManyRequests},
	} {
		if got := status(behind, request.path); got != request.want {
			t.Errorf("%s: status %d, want %d", request.path, got, request.want)
		}
	}
	// A limiter before the route does not have the parameter.
	before.Use(l.Middleware)
	before.Get("/tenants/{tenant}", ok)
	if got := status(before, "/tenants/green"); got != http.StatusBadRequest {
		t.Errorf("before the route: status %d", got)
	}
}
