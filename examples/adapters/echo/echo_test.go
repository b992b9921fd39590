package echo

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/labstack/echo/v5"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/proof/facetest"
	"github.com/seed-181794aa/ratelimit/tb"
)

func TestFace(t *testing.T) {
	facetest.Run(t, facetest.HTTP(func(t *testing.T, l *httplimit.Limiter) string {
		e := echo.New()
		e.Use(RateLimit(l))
		e.Any("/*", echo.WrapHandler(facetest.Application()))
		return facetest.Serve(t, e)
	}))
}

// The error of a handler is answered once, the limiter sees the response, and outer middleware gets
// the error.
func TestErrors(t *testing.T) {
	const body = `{"message":"Service Unavailable"}` + "\n"
	l, err := httplimit.New(httplimit.Rules(httplimit.Rule{
		Name: "all", Limit: tb.Limit{Capacity: 2 * len(body), Tokens: 1, Per: time.Hour},
		Cost: httplimit.Cost{Source: "response:bytes", Default: float64(2 * len(body))},
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
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if w.Code != http.StatusServiceUnavailable || w.Body.String() != body ||
		!errors.Is(outer, echo.ErrServiceUnavailable) {
		t.Errorf("%d %q, %v", w.Code, w.Body, outer)
	}
	if settled := l.Stats()[0].Table.Settled; settled != float64(len(body)) {
		t.Errorf("%v tokens settled, want %d", settled, len(body))
	}
}
