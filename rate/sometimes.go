package rate

import (
	"sync"
	"time"
)

// Sometimes calls a function in some of many cases, such as a line of a log. It calls the function
// if one of its fields says so. The zero Sometimes calls the first function only. All fields must
// be set before the first Do.
type Sometimes struct {
	First    int           // the first calls of Do, if above 0
	Every    int           // the first call of Do and each so many calls later, if above 0
	Interval time.Duration // a call of Do so long after the end of the last function, if above 0

	mu    sync.Mutex
	calls int64
	last  time.Time // end of the last function, if Interval is set
}

// Do calls f, or does nothing: see Sometimes. The first Do always calls f. Do is safe for
// concurrent use: it waits for a call of f that is under way, so f must not call Do.
func (s *Sometimes) Do(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	runs := calls == 0 || calls < int64(s.First) || s.Every > 0 && calls%int64(s.Every) == 0 ||
		s.Interval > 0 && time.Since(s.last) >= s.Interval
	if runs {
		f()
		if s.Interval > 0 {
			s.last = time.Now()
		}
	}
	s.calls++
}
