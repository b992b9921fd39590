package samplelog

import (
	"crypto/sha256"
	"fmt"
	"io"
	"testing"
)

// The documents quote results of the sample.
func TestSampleIsTheSameEveryTime(t *testing.T) {
	const want = "3ce50cd70557cf6a315ee79a0b21ff689d2f4f6deff95f70b4611c75de46ed90"
	log, _ := io.ReadAll(New(100_000))
	if got := fmt.Sprintf("%x", sha256.Sum256(log)); got != want {
		t.Errorf("SHA-256 %s, want %s", got, want)
	}
}
