package gin

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/seed-181794aa/ratelimit/examples/adapters/internal/adaptertest"
	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
)

func init() { gin.SetMode(gin.ReleaseMode) }

// serve starts a server whose engine has the middleware and the routes of app.
func serve(
	t *testing.T, app adaptertest.App, outer func(http.Handler) http.Handler, use ...gin.HandlerFunc,
) string {
	engine := gin.New()
	engine.Use(gin.RecoveryWithWriter(io.Discard))
	engine.Use(use...)
	engine.Any("/", func(c *gin.Context) {
		app.Serve()
		c.String(http.StatusOK, "hello")
	})
	engine.Any("/panic", func(*gin.Context) { panic("handler") })
	engine.GET("/cost", func(c *gin.Context) {
		c.Header(adaptertest.Cost, "3")
		c.String(http.StatusOK, "paid")
	})
	engine.GET("/late", func(c *gin.Context) {
		c.Status(http.StatusOK)
		c.Header(adaptertest.Cost, "3")
	})
	engine.GET("/fail", func(c *gin.Context) { c.AbortWithStatus(http.StatusServiceUnavailable) })
	engine.GET("/stream", func(c *gin.Context) {
		c.String(http.StatusOK, "first")
		c.Writer.Flush()
		<-app.Release
		c.String(http.StatusOK, "second")
	})
	server := httptest.NewServer(outer(engine))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func identity(h http.Handler) http.Handler { return h }

func startLimitedRoutes(t *testing.T, l *httplimit.Limiter, app adaptertest.App) string {
	return serve(t, app, identity, RateLimit(l))
}

func TestRateLimit(t *testing.T) { adaptertest.Run(t, startLimitedRoutes) }

func TestEstimates(t *testing.T) { adaptertest.RunEstimates(t, startLimitedRoutes) }

func startLimitedEngine(t *testing.T, l *httplimit.Limiter, app adaptertest.App) string {
	return serve(t, app, l.Middleware)
}

func TestLimitedEngine(t *testing.T) { adaptertest.Run(t, startLimitedEngine) }

func TestLimitedEngineResponses(t *testing.T) { adaptertest.RunResponses(t, startLimitedEngine) }

// The test of spoofed addresses is about something: Context.ClientIP believes them.
func TestClientIPIsSpoofed(t *testing.T) {
	engine := gin.New()
	engine.GET("/", func(c *gin.Context) { c.String(http.StatusOK, c.ClientIP()) })
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("X-Forwarded-For", "203.0.113.195")
	w := httptest.NewRecorder()
	if engine.ServeHTTP(w, r); w.Body.String() != "203.0.113.195" {
		t.Error(w.Body)
	}
}

func TestRateLimitOfOneRoute(t *testing.T) {
	l, err := httplimit.New(httplimit.Rules(httplimit.Rule{
		Name: "login", Limit: tb.Limit{Capacity: 1, Tokens: 1, Per: time.Hour},
	}))
	if err != nil {
		t.Fatal(err)
	}
	engine := gin.New()
	engine.GET("/login", RateLimit(l), func(c *gin.Context) {
		if d, ok := c.Get("ratelimit"); !ok || d.(httplimit.Decision).Rule != "login" {
			t.Errorf("the handler gets %+v", d)
		}
	})
	engine.GET("/", func(*gin.Context) {})
	for _, request := range []struct {
		path string
		want int
	}{{"/login", 200}, {"/login", 429}, {"/", 200}} {
		w := httptest.NewRecorder()
		engine.ServeHTTP(w, httptest.NewRequest(http.MethodGet, request.path, nil))
		if w.Code != request.want {
			t.Errorf("%s: status %d, want %d", request.path, w.Code, request.want)
		}
	}
}
