package proxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A stopped proxy serves the requests under way, accepts no new ones and closes WebSockets.
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
	go func() { stopped <- r.Stop() }()
	r.Log.Until(t, "shutting down")
	say(t, socket) // open while the other request is served
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

// Requests that take longer than the shutdown timeout are cut off.
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
	if err := r.Stop(); err != nil {
		t.Error(err)
	}
	<-ended
	r.Log.Until(t, "requests were cut off")
}
