package tbtest

import (
	"bytes"
	"context"
	"testing"
	"time"
	"unsafe"

	"github.com/seed-181794aa/ratelimit/tb"
)

// keys are the tests that RunKeys runs too. They ask nothing of a limiter but AllowN.
var keys = []test{
	{"KeysAreCopied", keysAreCopied},
	{"CopiedKeysAreEvicted", copiedKeysAreEvicted},
	{"CopiedKeysAreEvictedWhenFull", copiedKeysAreEvictedWhenFull},
	{"CopiedKeysStayUnderRefuseNew", copiedKeysStayUnderRefuseNew},
}

// Keyed is a limiter with keys of type K.
type Keyed[K comparable] interface {
	AllowN(ctx context.Context, key K, n int) (tb.Decision, error)
}

// RunKeys checks that limiters with keys of type K, made by newLimiter, copy the strings
// in their keys: a caller may use the memory of a key again when the call is over. Run
// checks that of string keys. The options are those of Run.
//
// key returns a key with all of text in its strings, which must be parts of text and not
// copies. Keys of different texts must differ.
func RunKeys[K comparable](
	t *testing.T,
	newLimiter func(tb.Limit, ...tb.Option) (Keyed[K], error),
	key func(text string) K,
) {
	s := func(limit tb.Limit, opts ...tb.Option) (tb.Limiter, error) {
		l, err := newLimiter(limit, opts...)
		return &texts[K]{l, key}, err
	}
	for _, tt := range keys {
		t.Run(tt.name, func(t *testing.T) { tt.run(&suite{t, s}) })
	}
}

// texts is a limiter by texts of which keys are made.
type texts[K comparable] struct {
	Keyed[K]
	key func(string) K
}

func (l *texts[K]) Allow(ctx context.Context, text string) (tb.Decision, error) {
	return l.AllowN(ctx, text, 1)
}

func (l *texts[K]) AllowN(ctx context.Context, text string, n int) (tb.Decision, error) {
	return l.Keyed.AllowN(ctx, l.key(text), n)
}

// unsafeString returns a string that shares b's memory, as parsers of headers do.
func unsafeString(b []byte) string { return unsafe.String(&b[0], len(b)) }

// A buffer that is used again at any place makes another key, and leaves that of the first
// call what it was.
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

// reuse makes a call for each of twenty keys, all of them in the same memory. name is a
// copy of the key.
func reuse(call func(inBuffer, name string)) {
	buffer := bytes.Repeat([]byte("k"), 22)
	for i := range 20 {
		copy(buffer[i:], "<x>")
		call(unsafeString(buffer), string(buffer))
	}
}

// A key is evicted under the name that it came with.
func copiedKeysAreEvicted(s *suite) {
	for _, bound := range []int{1, 2} {
		f := s.new(perSecond(10, 1), tb.WithMaxKeys(bound))
		last := ""
		reuse(func(inBuffer, name string) {
			f.Advance(time.Millisecond)
			f.granted(inBuffer, 10, 0)
			f.refused(name, 1, time.Second, 0)
			if bound == 2 && last != "" {
				f.refused(last, 1, time.Second-time.Millisecond, 0)
			}
			last = name
			f.atMostKeys(bound)
		})
	}
}

func copiedKeysAreEvictedWhenFull(s *suite) {
	for _, bound := range []int{1, 2, 1000} { // the last drops idle keys
		f := s.new(perSecond(10, 1), tb.WithMaxKeys(bound), tb.WithOverflow(tb.RefuseNew))
		reuse(func(inBuffer, name string) {
			f.Advance(time.Hour)
			f.granted(inBuffer, 10, 0)
			f.refused(name, 1, time.Second, 0)
			f.atMostKeys(bound)
		})
	}
}

func copiedKeysStayUnderRefuseNew(s *suite) {
	f := s.new(perSecond(10, 1), tb.WithMaxKeys(1), tb.WithOverflow(tb.RefuseNew))
	first := ""
	reuse(func(inBuffer, name string) {
		if first == "" {
			first = name
			f.granted(inBuffer, 10, 0)
			return
		}
		f.refused(inBuffer, 1, 10*time.Second, 0)
		f.refused(first, 1, time.Second, 0)
	})
}

// atMostKeys fails the test if the table has more keys.
func (f *fixture) atMostKeys(bound int) {
	f.Helper()
	if l, ok := f.Limiter.(counter); ok && l.Len() > bound {
		f.Fatalf("%d keys, want at most %d", l.Len(), bound)
	}
}
