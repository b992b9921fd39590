//go:build chromium

package testkit

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// shared is the headless Chromium of the tests of a process. Its start takes seconds.
var shared struct {
	once sync.Once
	ctx  context.Context
	end  context.CancelFunc
	err  error
}

// Main runs the tests of a package, and ends the browser that they share. TestMain calls it.
func Main(m *testing.M) {
	status := m.Run()
	if shared.end != nil {
		shared.end()
	}
	os.Exit(status)
}

// Browser returns the context of a new tab of a headless Chromium. The package needs Main.
func Browser(t *testing.T) context.Context {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if found, err := exec.LookPath(name); err == nil && path == "" {
			path = found
		}
	}
	if path == "" {
		t.Fatal("Chromium is not installed")
	}
	shared.once.Do(func() {
		opts := slices.Clone(chromedp.DefaultExecAllocatorOptions[:])
		opts = append(opts, chromedp.ExecPath(path))
		if os.Getuid() == 0 {
			opts = append(opts, chromedp.NoSandbox) // Chromium has no sandbox for root
		}
		shared.ctx, shared.end = chromedp.NewExecAllocator(context.Background(), opts...)
		shared.ctx, _ = chromedp.NewContext(shared.ctx)
		shared.err = chromedp.Do(shared.ctx) // starts the browser
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	ctx, cancel := chromedp.NewContext(shared.ctx)
	t.Cleanup(cancel)
	return ctx
}

// Text returns a function that returns the text of the element that a selector finds in a tab.
func Text(t *testing.T, tab context.Context) func(selector string) string {
	return func(selector string) string {
		t.Helper()
		s, err := chromedp.Run(tab, chromedp.TextContent(selector))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// Preference emulates a preference of the user.
func Preference(name, value string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: name, Value: value}},
		})
		return err
	})
}

// Console opens a tab and returns the messages on the console of the tab.
func Console(t *testing.T, tab context.Context) <-chan string {
	t.Helper()
	if err := chromedp.Do(tab); err != nil {
		t.Fatal(err)
	}
	messages := make(chan string, 100)
	console := chromedp.Console(tab)
	go func() {
		defer close(messages)
		for m, err := range console {
			if err != nil {
				return
			}
			messages <- m.String()
		}
	}()
	return messages
}
