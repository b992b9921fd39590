package chi

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/seed-181794aa/ratelimit/examples/adapters/internal/adaptertest"
	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
)

func start(t *testing.T, l *httplimit.Limiter, app adaptertest.App) string {
	router := chi.NewRouter()
	router.Use(recoverQuietly, l.Middleware)
	router.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		app.Serve()
		_, _ = io.WriteString(w, "hello")
	})
	router.HandleFunc("/panic", func(http.ResponseWriter, *http.Request) { panic("handler") })
	router.Get("/cost", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(adaptertest.Cost, "3")
		_, _ = io.WriteString(w, "paid")
	})
	router.Get("/late", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(adaptertest.Cost, "3")
	})
	router.Get("/fail", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no", http.StatusServiceUnavailable)
	})
	router.Get("/stream", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "first")
		w.(http.Flusher).Flush()
		<-app.Release
		_, _ = io.WriteString(w, "second")
	})
	server := httptest.NewServer(router)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// recoverQuietly is middleware.Recoverer without its output.
func recoverQuietly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if recover() != nil {
				w.WriteHeader(http.StatusInternalServerError)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

func TestMiddleware(t *testing.T) { adaptertest.Run(t, start) }

func TestResponses(t *testing.T) { adaptertest.RunResponses(t, start) }

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

// Chi can serve a route at other paths, which a selector does not pick. A limiter of the route
// limits all of them.
func TestOtherPathsOfARoute(t *testing.T) {
	login := httplimit.Selector{PathExact: "/login"}
	for name, change := range map[string]func(http.Handler) http.Handler{
		"CleanPath": middleware.CleanPath, "StripSlashes": middleware.StripSlashes,
	} {
		for selector, want := range map[*httplimit.Selector]int{
			&login: http.StatusOK, {}: http.StatusTooManyRequests,
		} {
			l, err := httplimit.New(&httplimit.Policy{Sets: []httplimit.RuleSet{{
				Selector: *selector, Rules: []httplimit.Rule{{
					Name: "login", Limit: tb.Limit{Capacity: 1, Tokens: 1, Per: time.Hour},
				}},
			}}})
			if err != nil {
				t.Fatal(err)
			}
			router := chi.NewRouter()
			router.Use(change)
			router.With(l.Middleware).Get("/login", func(http.ResponseWriter, *http.Request) {})
			if got := status(router, "/login"); got != http.StatusOK {
				t.Errorf("%s: /login: status %d", name, got)
			}
			if got := status(router, "/login/"); got != want {
				t.Errorf("%s: /login/ with %+v: status %d, want %d", name, *selector, got, want)
			}
		}
	}
}
