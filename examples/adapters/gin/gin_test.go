package gin

import (
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/proof/facetest"
)

func init() { gin.SetMode(gin.ReleaseMode) }

func TestFace(t *testing.T) {
	face := facetest.HTTP(func(t *testing.T, l *httplimit.Limiter) string {
		engine := gin.New()
		engine.Use(RateLimit(l))
		engine.Any("/*path", gin.WrapH(facetest.Application()))
		return facetest.Serve(t, engine)
	})
	face.Without = facetest.Responses
	facetest.Run(t, face)
}

// WithUsage replaces the body. The rest of that of net/http's own request would be the next one.
func TestRateLimitOfOneRoute(t *testing.T) {
	l := httplimit.PerKey(1, 0.001, func(r *http.Request) string { r.Body = nil; return "" })
	engine := gin.New()
	engine.Use(func(c *gin.Context) { defer func() { _ = recover() }(); c.Next() })
	engine.GET("/login", RateLimit(l), func(c *gin.Context) {
		if d, ok := c.Get("ratelimit"); !ok || d.(httplimit.Decision).Rule != "per-key" {
			t.Errorf("the handler gets %+v", d)
		}
		c.Request.MultipartForm = &multipart.Form{}
		panic("recovered by outer middleware")
	})
	engine.GET("/", func(*gin.Context) {})
	for i, request := range []struct {
		path string
		want int
	}{{"/login", 200}, {"/login", 429}, {"/", 200}} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, request.path, nil)
		engine.ServeHTTP(w, r)
		if w.Code != request.want || r.Body == nil || (r.MultipartForm != nil) != (i == 0) {
			t.Errorf("%s: status %d, want %d, %+v", request.path, w.Code, request.want, r)
		}
	}
}
