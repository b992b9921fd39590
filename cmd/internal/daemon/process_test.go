package daemon

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
)

// Tasks go on after the end of the context, because requests do, and end when they are stopped.
func TestBackground(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan struct{})
	stop := Background(ctx, func(ctx context.Context) {
		<-ctx.Done()
		close(ended)
	}, func(ctx context.Context) {
		interrupt()
		if ctx.Err() != nil {
			t.Error("the end of the context ends the tasks")
		}
	})
	<-ctx.Done()
	select {
	case <-ended:
		t.Error("a task has ended before it is stopped")
	default:
	}
	stop()
	select {
	case <-ended:
	default:
		t.Error("stop does not wait for a task")
	}
}

// What a process has written is there when it is closed.
func TestAProcessWritesInTheBackground(t *testing.T) {
	var stdout, stderr bytes.Buffer
	p := NewProcess(&stdout, &stderr, "json")
	_, _ = p.Stdout.Write([]byte("banner\n")) // never fails
	(&Reloader{What: "policy", Log: p.Log}).LogRejected("SIGHUP", errors.New("one\ntwo"))
	(&Reloader{What: "policy", Log: p.Throttled}).LogWarnings([]string{"three"})
	p.Close()
	for _, want := range []string{
		`"msg":"policy rejected: the previous one stays in force","because":"SIGHUP","errors":2}`,
		`"msg":"policy","error":"one"}`, `"msg":"policy","error":"two"}`,
		`"msg":"policy","warning":"three"}`,
	} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("no %s in\n%s", want, &stderr)
		}
	}
	if stdout.String() != "banner\n" || p.LostLines() != 0 {
		t.Errorf("stdout %q, %d lines lost", &stdout, p.LostLines())
	}
}
