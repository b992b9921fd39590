package unit

import "testing"

func TestSumHasPartsOfTokens(t *testing.T) {
	var s Sum
	for range 3 {
		s.Add(9, 4)
	}
	if got := s.Tokens(); got != 6.75 {
		t.Errorf("%v tokens, want 6.75", got)
	}
}
