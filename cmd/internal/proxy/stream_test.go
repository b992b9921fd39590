package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

// An upstream may answer piece by piece while it receives the request piece by piece.
func TestBothDirectionsAtOnce(t *testing.T) {
	_, url, _ := start(t, two, func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		if err := control.EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		_ = control.Flush()
		for lines := bufio.NewScanner(r.Body); lines.Scan(); {
			fmt.Fprintln(w, lines.Text())
			_ = control.Flush()
		}
	})
	body, w := io.Pipe()
	r, err := http.Post(url, "text/plain", body)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	lines := bufio.NewScanner(r.Body)
	for i := range 3 {
		fmt.Fprintln(w, i)
		if !lines.Scan() || lines.Text() != fmt.Sprint(i) {
			t.Fatalf("got %q, %v, want %d", lines.Text(), lines.Err(), i)
		}
	}
	w.Close()
	if lines.Scan() || lines.Err() != nil {
		t.Error(lines.Text(), lines.Err())
	}
}

// An upstream may answer before the request ends, as with an error in the middle of a call of gRPC,
// or end it without an answer. A transport of HTTP/2 would wait for the end.
func TestAnswerBeforeTheEndOfTheRequest(t *testing.T) {
	upstream := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		if _, _ = r.Body.Read(make([]byte, 1)); r.URL.Path == "/reset" {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Trailer", "Status")
		fmt.Fprint(w, r.Proto)
		_ = http.NewResponseController(w).Flush()
		w.Header().Set("Status", "0")
	}))
	upstream.EnableHTTP2 = true
	_, front, _ := start(t, two, nil, over(t, upstream))
	for path, want := range map[string]string{"/": "200HTTP/2.00", "/reset": "502Bad Gateway\n"} {
		body, w := io.Pipe()
		defer w.Close()
		go io.WriteString(w, "x")
		request, _ := http.NewRequest(http.MethodPost, front+path, body)
		r, text := testkit.Do(t, request)
		if got := fmt.Sprint(r.StatusCode, text, r.Trailer.Get("Status")); got != want {
			t.Errorf("%s: %q", path, got)
		}
	}
}

func echo(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, nil) // checks that Host and Origin are the same
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
	log := testkit.NewTranscript()
	_, url, _ := start(t, two, echo, func(c *Config) { c.Log, c.Access = log.Logger(), AccessAll })
	dial(t, url).Close(websocket.StatusNormalClosure, "")
	if line := log.Until(t, "msg=request"); !strings.Contains(line, "status=101") {
		t.Error(line)
	}
	dial(t, url)
	_, r, err := websocket.Dial(t.Context(), url, nil)
	if err == nil || r.StatusCode != http.StatusTooManyRequests {
		t.Error("the third request was not refused")
	}
}
