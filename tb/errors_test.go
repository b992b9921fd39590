package tb

import (
	"strings"
	"testing"
	"time"
)

func TestWaitErrorSaysWhyNoWaitHelps(t *testing.T) {
	for want, err := range map[string]*WaitError{
		"ratelimit: no wait can help": {Wait: Never},
		"ratelimit: the wait of 2s exceeds the deadline": {
			Wait: 2 * time.Second, Deadline: true,
		},
		"ratelimit: no wait of 2s: too many tokens are waited for al": {Wait: 2 * time.Second},
	} {
		if got := err.Error(); !strings.HasPrefix(got, want) {
			t.Errorf("%+v: %s, want %s", *err, got, want)
		}
	}
}
