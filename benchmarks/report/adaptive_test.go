package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestGuideIsUpToDate(t *testing.T) {
	if testing.Short() || runtime.GOARCH != "amd64" {
		t.Skip("takes long; elsewhere the last digit of a number may differ")
	}
	files, err := generateGuide(root)
	if err != nil {
		t.Fatal(err)
	}
	upToDate(t, files)
}

func TestGuideShowsEveryChart(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, guide))
	if err != nil {
		t.Fatal(err)
	}
	for _, chart := range timelines {
		if !bytes.Contains(text, []byte("("+chart.name+".svg)")) {
			t.Errorf("%s does not show %s", guide, chart.name)
		}
	}
}
