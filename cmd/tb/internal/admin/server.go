// Package admin is the admin server of tb proxy: a page that shows the buckets live, and the
// metrics for Prometheus.
package admin

import (
	"context"
	"embed"
	"encoding/json"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

//go:embed page
var page embed.FS

// Config says what the server shows.
type Config struct {
	Limiter *httplimit.Limiter
	Metrics http.Handler
	Key     func(string) string // how a key is shown
	Proxy   string              // URL of the proxy
	Demo    bool                // the upstream is the demo, which may be sent bursts
}

// Server is the handler of the admin address. It is safe for concurrent use.
type Server struct {
	Config
	mux     http.Handler
	client  *http.Client
	hot     *hot
	history *history

	arriving *http.Request // like those of a burst; nil if there are none
}

// New returns a server. Its history goes on while Run runs.
func New(c Config) *Server {
	s := &Server{
		Config: c, hot: newHot(), history: newHistory(),
		// With a transport of its own: no proxy of the environment's stands in between.
		client: &http.Client{Transport: &http.Transport{}, Timeout: burstTimeout},
	}
	files, err := fs.Sub(page, "page")
	if err != nil {
		panic(err) // the directory is embedded
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(files))
	mux.Handle("GET /metrics", c.Metrics)
	mux.HandleFunc("GET /api/state", s.state)
	if c.Demo {
		s.arriving = arriving(c.Proxy)
		mux.HandleFunc("POST /api/burst", s.burst)
	}
	s.mux = http.NewCrossOriginProtection().Handler(mux)
	return s
}

// ServeHTTP answers requests to the admin address. A page of somebody else's must not get
// answers by giving its own name this address (DNS rebinding), so on an address of this
// machine alone other names than localhost are refused.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok &&
		at.IP.IsLoopback() && !local(r.Host) {
		http.Error(w, "use an IP address or localhost", http.StatusMisdirectedRequest)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; "+
		"form-action 'self'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	s.mux.ServeHTTP(w, r)
}

// local says whether a Host cannot be the name of a page on the internet.
func local(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil || strings.EqualFold(host, "localhost")
}

// Refused notes a request that was refused. It is a hook of the limiter.
func (s *Server) Refused(r *http.Request, e httplimit.Event) { s.hot.refused(r, e) }

// Run keeps the history until the end of ctx.
func (s *Server) Run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.history.add(s.Limiter.Stats())
			s.hot.fade()
		}
	}
}

// send answers with v as JSON.
func send(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client is gone, or is not: there is nobody to tell
}
