package samplelog

import (
	"crypto/sha256"
	"fmt"
	"io"
	"testing"
)

// The documents quote results of the sample.
func TestSampleIsTheSameEveryTime(t *testing.T) {
	const want = "faf2bcd8ce4ae194269866427ff178cb7d7bb4b0f1279492132d6f8086d06f5a"
	log, _ := io.ReadAll(New(100_000))
	if got := fmt.Sprintf("%x", sha256.Sum256(log)); got != want {
		t.Errorf("SHA-256 %s, want %s", got, want)
	}
}
