package echo

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	"github.com/seed-181794aa/ratelimit/examples/adapters/internal/adaptertest"
	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
)

func start(t *testing.T, l *httplimit.Limiter, app adaptertest.App) string {
	e := echo.New()
	e.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	e.Use(middleware.Recover(), RateLimit(l))
	e.Any("/", func(c *echo.Context) error {
		app.Serve()
		return c.String(http.StatusOK, "hello")
	})
	e.Any("/panic", func(*echo.Context) error { panic("handler") })
	e.GET("/cost", func(c *echo.Context) error {
		c.Response().Header().Set(adaptertest.Cost, "3")
		return c.String(http.StatusOK, "paid")
	})
	e.GET("/late", func(c *echo.Context) error {
		c.Response().Header().Set(adaptertest.Cost, "3")
		return nil
	})
	e.GET("/fail", func(*echo.Context) error { return echo.ErrServiceUnavailable })
	e.GET("/stream", func(c *echo.Context) error {
		_, _ = io.WriteString(c.Response(), "first")
		_ = http.NewResponseController(c.Response()).Flush()
		<-app.Release
		_, err := io.WriteString(c.Response(), "second")
		return err
	})
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func TestRateLimit(t *testing.T) { adaptertest.Run(t, start) }

func TestResponses(t *testing.T) { adaptertest.RunResponses(t, start) }

// The error of a handler is answered once, and outer middleware gets it.
func TestErrors(t *testing.T) {
	l, err := httplimit.New(httplimit.Rules(httplimit.Rule{
		Name: "all", Limit: tb.Limit{Capacity: 1, Tokens: 1, Per: time.Hour},
	}), httplimit.WithContext())
	if err != nil {
		t.Fatal(err)
	}
	e := echo.New()
	var outer error
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			outer = next(c)
			return outer
		}
	}, RateLimit(l))
	e.GET("/", func(c *echo.Context) error {
		if d, ok := httplimit.FromContext(c.Request().Context()); !ok || d.Rule != "all" {
			t.Errorf("the handler gets %+v", d)
		}
		return echo.ErrServiceUnavailable
	})
	for _, want := range []struct {
		status int
		err    error
		body   string
	}{
		{
			http.StatusServiceUnavailable, echo.ErrServiceUnavailable,
			`{"message":"Service Unavailable"}` + "\n",
		},
		{http.StatusTooManyRequests, nil, ""},
	} {
		w := httptest.NewRecorder()
		e.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		if w.Code != want.status || !errors.Is(outer, want.err) ||
			want.body != "" && w.Body.String() != want.body {
			t.Errorf("%d %q, %v; want %+v", w.Code, w.Body, outer, want)
		}
	}
}
