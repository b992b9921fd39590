package admin

import (
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"
)

const (
	maxBurst     = 100
	maxForm      = 1 << 10         // bytes
	burstTimeout = 5 * time.Second // of one request of a burst
)

// reply is the proxy's answer to one request of a burst.
type reply struct {
	Status     int    `json:"status"`
	Remaining  string `json:"remaining"`
	RetryAfter string `json:"retryAfter"`
}

// serveBurst sends n requests to the proxy, one after the other, and answers with the
// replies. The form has n.
func (s *Server) serveBurst(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	// ParseForm reads no multipart forms, which may be written to files.
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	n, err := strconv.Atoi(r.PostForm.Get("n"))
	if err != nil || n < 1 || n > maxBurst {
		http.Error(w, fmt.Sprintf("n: want a whole number, 1 to %d", maxBurst),
			http.StatusBadRequest)
		return
	}
	replies := make([]reply, 0, n)
	for range n {
		one, err := s.sendOne(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		replies = append(replies, one)
	}
	writeJSON(w, replies)
}

// sendOne sends one request to the proxy. It is cancelled when r is.
func (s *Server) sendOne(r *http.Request) (reply, error) {
	req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, s.Proxy+"/", nil)
	if err != nil {
		return reply{}, err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil { // otherwise there is no keep-alive
		return reply{}, err
	}
	return reply{
		Status: resp.StatusCode, Remaining: resp.Header.Get("RateLimit-Remaining"),
		RetryAfter: resp.Header.Get("Retry-After"),
	}, nil
}

// newBurstRequest returns a request of a burst as the proxy receives it, or nil if its client
// address is not known beforehand.
func newBurstRequest(proxy string) *http.Request {
	u, err := url.Parse(proxy)
	if err != nil {
		return nil
	}
	// A connection to an address of this machine comes from the same address.
	if _, err := netip.ParseAddr(u.Hostname()); err != nil {
		return nil
	}
	return &http.Request{
		Method: http.MethodGet, URL: &url.URL{Path: "/"}, Host: u.Host, Header: http.Header{},
		RemoteAddr: u.Host,
	}
}
