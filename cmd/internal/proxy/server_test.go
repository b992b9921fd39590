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
	r := run(t, func(c *Command) { _ = c.Upstream.UnmarshalText([]byte(upstream.URL)) })
	socket := dial(t, r.proxy)
	slow := make(chan string)
	go func() {
		resp, err := http.Get(r.proxy + "/slow")
		if err != nil {
			slow <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		slow <- fmt.Sprint(string(body), err)
	}()
	<-arrived
	stopped := make(chan error)
	go func() { stopped <- r.Stop() }()
	r.Log.Until(t, "shutting down")
	say(t, socket) // open while the other request is served
	close(finish)
	if got := <-slow; got != "done<nil>" {
		t.Error(got)
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
		_ = c.Upstream.UnmarshalText([]byte(upstream.URL))
	})
	go http.Get(r.proxy) // which fails
	<-arrived
	if err := r.Stop(); err != nil {
		t.Error(err)
	}
	r.Log.Until(t, "requests were cut off")
}
