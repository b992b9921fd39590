package gin

import (
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

func TestRateLimitOfOneRoute(t *testing.T) {
	l := httplimit.PerAddress(1, 0.001)
	engine := gin.New()
	engine.GET("/login", RateLimit(l), func(c *gin.Context) {
		if d, ok := c.Get("ratelimit"); !ok || d.(httplimit.Decision).Rule != "per-address" {
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
