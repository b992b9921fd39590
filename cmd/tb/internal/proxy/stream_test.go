package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// What an upstream flushes arrives, while the response goes on.
func TestStreamingResponse(t *testing.T) {
	more := make(chan struct{})
	_, url, _ := start(t, two, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			_ = http.NewResponseController(w).Flush()
			<-more
		}
	})
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	lines := bufio.NewReader(r.Body)
	for i := range 3 {
		line, err := lines.ReadString('\n')
		if want := fmt.Sprintf("data: %d\n", i); line != want || err != nil {
			t.Fatalf("got %q, %v, want %q", line, err, want)
		}
		_, _ = lines.ReadString('\n')
		more <- struct{}{}
	}
}

// What a client has written arrives, while the request goes on.
func TestStreamingRequest(t *testing.T) {
	got := make(chan string)
	_, url, _ := start(t, two, func(_ http.ResponseWriter, r *http.Request) {
		lines := bufio.NewScanner(r.Body)
		for lines.Scan() {
			got <- lines.Text()
		}
		close(got)
	})
	body, w := io.Pipe()
	go func() {
		r, err := http.Post(url, "text/plain", body)
		if err != nil {
			t.Error(err)
			return
		}
		r.Body.Close()
	}()
	for i := range 3 {
		fmt.Fprintln(w, i)
		if line := <-got; line != fmt.Sprint(i) {
			t.Errorf("got %q, want %d", line, i)
		}
	}
	w.Close()
	<-got
}

// echo is a WebSocket server.
func echo(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, nil) // if the Host is that of the Origin
	if err != nil {
		return
	}
	defer c.CloseNow()
	for {
		kind, text, err := c.Read(r.Context())
		if err != nil || c.Write(r.Context(), kind, text) != nil {
			return
		}
	}
}

func dial(t *testing.T, url string) *websocket.Conn {
	t.Helper()
	c, _, err := websocket.Dial(t.Context(), url, &websocket.DialOptions{
		HTTPHeader: http.Header{"Origin": {url}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.CloseNow() })
	say(t, c)
	return c
}

func say(t *testing.T, c *websocket.Conn) {
	t.Helper()
	if err := c.Write(t.Context(), websocket.MessageText, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, text, err := c.Read(t.Context()); err != nil || string(text) != "hello" {
		t.Fatalf("%q, %v", text, err)
	}
}

func TestWebSocket(t *testing.T) {
	log := newTranscript()
	_, url, _ := start(t, two, echo, func(c *Config) { c.Log, c.Access = log.logger(), AccessAll })
	dial(t, url).Close(websocket.StatusNormalClosure, "")
	if line := log.until(t, "msg=request"); !strings.Contains(line, "status=101") {
		t.Error(line)
	}
	dial(t, url)
	_, r, err := websocket.Dial(t.Context(), url, nil)
	if err == nil || r.StatusCode != http.StatusTooManyRequests {
		t.Error("a third was not refused")
	}
}

// At the end requests may end, new ones are not accepted, and WebSockets are closed.
func TestShutdown(t *testing.T) {
	arrived, finish := make(chan struct{}), make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/slow" {
			echo(w, r)
			return
		}
		close(arrived)
		<-finish
		fmt.Fprint(w, "done")
	}))
	defer upstream.Close()
	r := run(t, func(c *Command) {
		if err := c.Upstream.UnmarshalText([]byte(upstream.URL)); err != nil {
			t.Error(err)
		}
	})
	socket := dial(t, r.proxy)
	type result struct {
		body string
		err  error
	}
	slow := make(chan result)
	go func() {
		resp, err := http.Get(r.proxy + "/slow")
		if err != nil {
			slow <- result{"", err}
			return
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		slow <- result{string(body), err}
	}()
	<-arrived
	stopped := make(chan error)
	go func() { stopped <- r.stop() }()
	r.log.until(t, "shutting down")
	say(t, socket) // still open, as long as the other request is served
	close(finish)
	if got := <-slow; got.body != "done" || got.err != nil {
		t.Errorf("%q, %v", got.body, got.err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if _, _, err := socket.Read(context.Background()); err == nil {
		t.Error("the WebSocket is still open")
	}
	if _, err := http.Get(r.proxy); err == nil {
		t.Error("the port is still open")
	}
}

// Requests that take longer than they may are cut off, so that the proxy ends.
func TestShutdownCutsOff(t *testing.T) {
	arrived, finish := make(chan struct{}), make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(arrived)
		<-finish
	}))
	defer upstream.Close()
	defer close(finish)
	r := run(t, func(c *Command) {
		c.Shutdown = 0
		if err := c.Upstream.UnmarshalText([]byte(upstream.URL)); err != nil {
			t.Error(err)
		}
	})
	ended := make(chan error)
	go func() {
		resp, err := http.Get(r.proxy)
		if err == nil {
			resp.Body.Close()
		}
		ended <- err
	}()
	<-arrived
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	<-ended
	r.log.until(t, "requests were cut off")
}
