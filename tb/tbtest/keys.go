package tbtest

import (
	"bytes"
	"context"
	"testing"
	"time"
	"unsafe"

	"github.com/seed-181794aa/ratelimit/tb"
)

// keys are the tests that Run and RunKeys share. They need only AllowN.
var keys = []test{
	{"KeysAreCopied", keysAreCopied},
	{"CopiedKeysAreEvicted", copiedKeysAreEvicted},
	{"CopiedKeysAreEvictedWhenFull", copiedKeysAreEvictedWhenFull},
	{"CopiedKeysStayUnderRefuseNew", copiedKeysStayUnderRefuseNew},
}

// Keyed is a limiter with keys of type K.
type Keyed[K comparable] interface {
	AllowN(ctx context.Context, key K, cost float64) (tb.Decision, error)
}

// RunKeys checks that limiters with keys of type K copy the strings in their keys. A caller may
// reuse the memory of a key after the call. Run checks the same for string keys, if the limiter
// has a table.
//
// newLimiter makes the limiters. It gets the same options as in Run.
//
// key makes a key from text. The strings in the key must be parts of text, not copies, and
// together hold all of it. Different texts must give different keys. A text has at least eight
// bytes.
func RunKeys[K comparable, L Keyed[K]](
	t *testing.T, newLimiter func(tb.Limit, ...tb.Option) (L, error), key func(text string) K,
) {
	newByText := func(limit tb.Limit, opts ...tb.Option) (tb.Limiter, error) {
		l, err := newLimiter(limit, opts...)
		return &byText[K]{l, key}, err
	}
	for _, tt := range keys {
		t.Run(tt.name, func(t *testing.T) { tt.run(&suite{t, newByText}) })
	}
}

// byText is a limiter with string keys that makes a K from each.
type byText[K comparable] struct {
	Keyed[K]
	key func(string) K
}

func (l *byText[K]) Allow(ctx context.Context, text string) (tb.Decision, error) {
	return l.AllowN(ctx, text, 1)
}

func (l *byText[K]) AllowN(ctx context.Context, text string, cost float64) (tb.Decision, error) {
	return l.Keyed.AllowN(ctx, l.key(text), cost)
}

// unsafeString returns a string that shares b's memory. Some parsers of headers return such
// strings.
func unsafeString(b []byte) string { return unsafe.String(&b[0], len(b)) }

// A change of one byte in the buffer makes another key, and does not change the key in the
// table.
func keysAreCopied(s *suite) {
	for _, size := range []int{8, 300} {
		for at := 0; at < size; at += size / 8 {
			f := s.new(perSecond(10, 1))
			buffer := bytes.Repeat([]byte("k"), size)
			first := string(buffer)
			f.granted(unsafeString(buffer), 10, 0)
			buffer[at] = '2'
			f.granted(unsafeString(buffer), 9, 1) // a new key
			f.refused(first, 1, time.Second, 0)
			buffer[at] = '3'
			f.refused(first, 1, time.Second, 0)
			f.granted(first[:at]+"2"+first[at+1:], 1, 0)
			f.granted(unsafeString(buffer), 10, 0)
		}
	}
}

// inOneBuffer calls call with twenty keys, one after another in the same memory, and with a copy
// of each.
func inOneBuffer(call func(key, keyCopy string)) {
	buffer := bytes.Repeat([]byte("k"), 22)
	for i := range 20 {
		copy(buffer[i:], "<x>")
		call(unsafeString(buffer), string(buffer))
	}
}

// A key can be evicted after its buffer has changed.
func copiedKeysAreEvicted(s *suite) {
	for _, bound := range []int{1, 2} {
		f := s.new(perSecond(10, 1), tb.WithMaxKeys(bound))
		last := ""
		inOneBuffer(func(key, keyCopy string) {
			f.Advance(time.Millisecond)
			f.granted(key, 10, 0)
			f.refused(keyCopy, 1, time.Second, 0)
			if bound == 2 && last != "" {
				f.refused(last, 1, time.Second-time.Millisecond, 0)
			}
			last = keyCopy
			f.atMostKeys(bound)
		})
	}
}

func copiedKeysAreEvictedWhenFull(s *suite) {
	for _, bound := range []int{1, 2, 1000} { // with room, an insert drops idle keys
		f := s.new(perSecond(10, 1), tb.WithMaxKeys(bound), tb.WithOverflow(tb.RefuseNew))
		inOneBuffer(func(key, keyCopy string) {
			f.Advance(time.Hour)
			f.granted(key, 10, 0)
			f.refused(keyCopy, 1, time.Second, 0)
			f.atMostKeys(bound)
		})
	}
}

func copiedKeysStayUnderRefuseNew(s *suite) {
	f := s.new(perSecond(10, 1), tb.WithMaxKeys(1), tb.WithOverflow(tb.RefuseNew))
	first := ""
	inOneBuffer(func(key, keyCopy string) {
		if first == "" {
			first = keyCopy
			f.granted(key, 10, 0)
			return
		}
		f.refused(key, 1, 10*time.Second, 0)
		f.refused(first, 1, time.Second, 0)
	})
}

// hasKeys fails the test unless the table has n keys.
func (f *fixture) hasKeys(n int) {
	f.Helper()
	if l, ok := f.Limiter.(hasLen); ok && l.Len() != n {
		f.Fatalf("%d keys, want %d", l.Len(), n)
	}
}

// atMostKeys fails the test if the table has more than bound keys.
func (f *fixture) atMostKeys(bound int) {
	f.Helper()
	if l, ok := f.Limiter.(hasLen); ok && l.Len() > bound {
		f.Fatalf("%d keys, want at most %d", l.Len(), bound)
	}
}
