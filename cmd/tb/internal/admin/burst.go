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
	burstTimeout = 5 * time.Second // of one request of it
)

// reply is what the proxy answered to a request of a burst.
type reply struct {
	Status     int    `json:"status"`
	Remaining  string `json:"remaining"`
	RetryAfter string `json:"retryAfter"`
}

// burst sends requests to the proxy, one after the other, and answers with its replies. How
// many is in the form.
func (s *Server) burst(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(r.PostFormValue("n"))
	if err != nil || n < 1 || n > maxBurst {
		http.Error(w, fmt.Sprintf("n: want a whole number, 1 to %d", maxBurst),
			http.StatusBadRequest)
		return
	}
	replies := make([]reply, 0, n)
	for range n {
		one, err := s.ping(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		replies = append(replies, one)
	}
	send(w, replies)
}

// arriving returns a request of a burst as it arrives at the proxy, or nil if it is not known
// from which address that will be.
func arriving(proxy string) *http.Request {
	u, err := url.Parse(proxy)
	if err != nil {
		return nil
	}
	// Who connects to an address of this machine comes from the same address.
	if _, err := netip.ParseAddr(u.Hostname()); err != nil {
		return nil
	}
	return &http.Request{
		Method: http.MethodGet, URL: &url.URL{Path: "/"}, Host: u.Host, Header: http.Header{},
		RemoteAddr: u.Host,
	}
}

// ping sends the proxy one request, which ends with r.
func (s *Server) ping(r *http.Request) (reply, error) {
	req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, s.Proxy+"/", nil)
	if err != nil {
		return reply{}, err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil { // or there is no keep-alive
		return reply{}, err
	}
	return reply{
		Status: resp.StatusCode, Remaining: resp.Header.Get("RateLimit-Remaining"),
		RetryAfter: resp.Header.Get("Retry-After"),
	}, nil
}
