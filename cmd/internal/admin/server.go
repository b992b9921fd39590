// Package admin implements the admin server of tb-proxy and tb-rls: a live page of the buckets, and
// the metrics for Prometheus.
package admin

import (
	"context"
	"embed"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/daemon"
	"github.com/seed-181794aa/ratelimit/cmd/internal/pagestyle"
	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
)

//go:embed page
var page embed.FS

// Config configures a Server.
type Config struct {
	Limiter   Limiter
	Metrics   http.Handler
	FormatKey func([]httplimit.KeyPart) string // for the page
	Title     string                           // of the page
	Where     string                           // is the line below the title
	Warnings  func() []string                  // of the policy in force; may be nil
	More      map[string]http.HandlerFunc      // by pattern
}

// Limiter has the rules that the page shows, and resets the buckets of keys as httplimit.FormatKey
// writes them.
type Limiter interface {
	Stats() []httplimit.RuleStats
	Reset(rule, key string) error
}

// Server is the handler of the admin address. It is safe for concurrent use.
type Server struct {
	Config
	handler http.Handler
	hot     *hotBuckets
	history *history
}

// New returns a server. Run updates its history.
func New(c Config) *Server {
	s := &Server{Config: c, hot: newHotBuckets(), history: &history{}}
	files, err := fs.Sub(page, "page")
	if err != nil {
		panic(err) // the directory is embedded
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(files))
	mux.HandleFunc("GET /base.css", serveText("text/css", pagestyle.Style))
	mux.HandleFunc("GET /charts.js", serveText("text/javascript", pagestyle.Script))
	mux.Handle("GET /metrics", c.Metrics)
	mux.HandleFunc("GET /api/state", s.serveSnapshot)
	mux.HandleFunc("POST /api/reset", s.serveReset)
	for pattern, handler := range c.More {
		mux.HandleFunc(pattern, handler)
	}
	s.handler = http.NewCrossOriginProtection().Handler(mux)
	return s
}

// ServeHTTP answers requests to the admin address. On a loopback address it refuses host
// names other than localhost. Otherwise a foreign web page could read the answers by pointing
// its own name at this address (DNS rebinding). A slash at the end of a path makes no difference.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if ok && local.IP.IsLoopback() && !isLocalhostOrIP(r.Host) {
		http.Error(w, "use an IP address or localhost", http.StatusMisdirectedRequest)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; "+
		"form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	path := strings.TrimRight(r.URL.Path, "/")
	if path == "" || path == "/index.html" {
		path = "/"
	}
	if path != r.URL.Path {
		r = r.WithContext(r.Context()) // a copy
		r.URL = &url.URL{Path: path, RawQuery: r.URL.RawQuery}
	}
	s.handler.ServeHTTP(w, r)
}

// isLocalhostOrIP reports whether a Host is localhost or an IP address, with or without a
// port. A web page on the internet has neither as its name.
func isLocalhostOrIP(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil || strings.EqualFold(host, "localhost")
}

// Refused records a refused request. It is a hook of the limiter. The level of its bucket is asked
// for with a copy of the request, which takes no tokens.
func (s *Server) Refused(r *http.Request, e httplimit.Event) {
	s.hot.add(e.Rule, e.Key, func() LevelFunc {
		sample := newSample(r)
		l, ok := s.Limiter.(interface {
			Explain(*http.Request) []httplimit.Explanation
		})
		if sample == nil || !ok {
			return nil
		}
		return func() (tb.Limit, tb.Level, error) {
			for _, now := range l.Explain(sample) {
				if bucketID(now.Rule, now.Key) == bucketID(e.Rule, e.Key) {
					return now.Limit, now.Level, nil
				}
			}
			return tb.Limit{}, tb.Level{}, httplimit.ErrNoBucket // the policy has changed
		}
	})
}

// RefusedBucket records a request that a bucket refused, of a Limiter that does not know the
// buckets of HTTP requests. level returns the limit and the level of the bucket, and may be nil.
func (s *Server) RefusedBucket(rule string, key []httplimit.KeyPart, level LevelFunc) {
	s.hot.add(rule, key, func() LevelFunc { return level })
}

func (s *Server) serveReset(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxSample)
	rule, key := r.PostFormValue("rule"), r.PostFormValue("key")
	for _, b := range s.hot.hottest() { // which have their keys, also if the page has hashes
		if b.rule == rule && s.FormatKey(b.key) == key {
			key = httplimit.FormatKey(b.key)
		}
	}
	switch err := s.Limiter.Reset(rule, key); {
	case errors.Is(err, httplimit.ErrNoBucket):
		http.Error(w, err.Error(), http.StatusNotFound)
	case err != nil:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// Run adds to the history every second until ctx is done.
func (s *Server) Run(ctx context.Context) {
	daemon.Every(time.Second, func() {
		s.history.addSecond(s.Limiter.Stats())
		s.hot.fade()
	})(ctx)
}

func serveText(mediaType, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", mediaType+"; charset=utf-8")
		_, _ = io.WriteString(w, text) // this fails only if the client is gone
	}
}
