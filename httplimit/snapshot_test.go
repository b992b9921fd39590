package httplimit

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/compositekey"
	"github.com/seed-181794aa/ratelimit/tb"
)

const threeRules = `{"rules": [
	{"name": "net", "limit_keys": ["ip:address/64,/48"],
	 "algorithm_config": {"tokens_per_second": 0.1, "burst": 5}},
	{"name": "key", "limit_keys": ["header:k", "ip:address"],
	 "algorithm_config": {"tokens_per_second": 0.1, "burst": 3}},
	{"name": "all", "limit_keys": [], "mode": "shadow",
	 "algorithm_config": {"tokens_per_second": 0.1, "burst": 50}}]}`

func (s *site) snapshot() string {
	s.t.Helper()
	var b bytes.Buffer
	if err := s.Snapshot(&b); err != nil {
		s.t.Fatal(err)
	}
	return b.String()
}

func (s *site) restarted(snapshot, policy string, opts ...Option) (*site, Restored) {
	s.t.Helper()
	next := newSite(s.t, policy, opts...)
	next.now = s.now
	done, err := next.Restore(strings.NewReader(snapshot))
	if err != nil {
		s.t.Fatalf("%v in\n%s", err, snapshot)
	}
	return next, done
}

func TestRestoreGivesEachBucketItsTokens(t *testing.T) {
	s := newSite(t, threeRules)
	long := "K: " + strings.Repeat("long", 100)
	requests := []*http.Request{
		by("2001:db8:0:1::1", "K: a"), by("2001:db8:0:1::2", "K: a"),
		by("2001:db8:0:2::1", long), by("192.0.2.1", "K: \x00\xff"), by("192.0.2.1"), by("", "K: b"),
	}
	for i, r := range requests {
		for range i {
			s.send(r)
		}
	}
	levels := func(s *site) (all []string) {
		for _, r := range requests {
			for _, e := range s.Explain(r) {
				all = append(all, sprint(e.Rule, FormatKey(e.Key), e.Level))
			}
		}
		return all
	}
	want := strings.Join(levels(s), "\n")
	text := s.snapshot()
	next, done := s.restarted(text, threeRules)
	if got := strings.Join(levels(next), "\n"); got != want {
		t.Errorf("%s\nwant\n%s\nof\n%s", got, want, text)
	}
	if n := strings.Count(unzip(t, text), `{"bucket"`); done.Buckets != n || n < 8 ||
		len(done.Skipped) > 0 || !done.Time.Equal(s.now) {
		t.Errorf("%+v of %d", done, n)
	}
	// The wall clock goes on while no process runs.
	s.now = s.now.Add(15 * time.Second)
	next, _ = s.restarted(text, threeRules)
	if got, want := strings.Join(levels(next), "\n"), strings.Join(levels(s), "\n"); got != want {
		t.Errorf("15 seconds later\n%s\nwant\n%s", got, want)
	}
	// Buckets that are full are not in a snapshot, and those of a store neither.
	s.now = s.now.Add(time.Hour)
	if text := unzip(t, s.snapshot()); strings.Contains(text, `{"bucket"`) {
		t.Error(text)
	}
	s = newSite(t, threeRules, WithStore(referenceStore{t: t}))
	if text := unzip(t, s.snapshot()); len(text) == 0 || strings.Contains(text, `{"rule"`) {
		t.Error(text)
	}
}

func TestRestoreSkipsRulesWithOtherKeys(t *testing.T) {
	s := newSite(t, threeRules)
	s.send(by("2001:db8::1", "K: a"))
	text := s.snapshot()
	const (
		net   = "net:ip%3Aaddress%2F64%2C%2F48 (prefixes 32 and 64)"
		net48 = "net%2F48:ip%3Aaddress%2F64%2C%2F48 (prefixes 32 and 48)"
		key   = "key:header%3Ak,ip%3Aaddress (prefixes 32 and 64)"
		all   = "all:"
	)
	for _, c := range []struct {
		policy  string
		opts    []Option
		skipped []string
	}{
		{threeRules, nil, nil},
		{strings.Replace(threeRules, `"key"`, `"other"`, 1), nil, []string{key}},
		{strings.Replace(threeRules, "header:k", "header:K", 1), nil, nil},
		{strings.Replace(threeRules, "header:k", "query:k", 1), nil, []string{key}},
		{threeRules, []Option{WithClientAddress(ClientAddress{IPv6Bits: 56})}, []string{key}},
		{threeRules, []Option{WithClientAddress(ClientAddress{IPv4Bits: 24})},
			[]string{net, net48, key}},
		{threeRules, []Option{WithStore(referenceStore{t: t})}, []string{net, net48, key, all}},
	} {
		var want []string
		for _, id := range c.skipped {
			want = append(want, sprintf("rule %q: the policy has no such rule in memory", id))
		}
		if _, done := s.restarted(text, c.policy, c.opts...); !slices.Equal(done.Skipped, want) {
			t.Errorf("%q, want %q", done.Skipped, want)
		}
	}
}

func TestBadSnapshotsAreErrorsAndChangeNothing(t *testing.T) {
	s := newSite(t, slowRule(1, 3))
	s.granted(3, "K: 1")
	s.granted(3, "K: 2")
	good := s.snapshot()
	lines := strings.SplitAfter(unzip(t, good), "\n")
	if len(lines) != 5 {
		t.Fatalf("%q", lines)
	}
	line := func(n int, old, next string) string {
		all := append([]string(nil), lines...)
		if !strings.Contains(all[n-1], old) {
			t.Fatalf("no %s in %s", old, all[n-1])
		}
		all[n-1] = strings.Replace(all[n-1], old, next, 1)
		return zip(strings.Join(all, ""))
	}
	for _, c := range []struct{ text, want string }{
		{"", "line 1: is not the begin of a snapshot: EOF"},
		{lines[0], "line 1: is not the begin of a snapshot: gzip: invalid header"},
		{zip(""), "line 1: is not the begin of a snapshot: EOF"},
		{zip("{}"), `line 1: the format is "", want "httplimit buckets"`},
		{line(1, `"version":6`, `"version":4`), "line 1: the version is 4, want 6"},
		{line(1, `"version":6`, `"version":7`), "line 1: the version is 7, want 6"},
		{line(4, `"at":`, `"held":1,"at":`), "line 4: ratelimit: Held is 1970"},
		{good[:len(good)-1], "line 5: unexpected EOF"},
		{good[:len(good)/2], "line "},
		{good + good, "line 5: json: unknown field"},
		{good + "x", "line 5: unexpected EOF"},
		{line(2, `{"rule"`, `{"rules"`), "line 2: json: unknown field"},
		{line(2, lines[1], ""), "line 2: want a rule, or a bucket after its rule"},
		{line(2, lines[1], "{}"), "line 2: want a rule, or a bucket after its rule"},
		{line(4, `"tokens":`, `"token":`), "line 4: json: unknown field"},
		{line(4, `"at":`, `"at":9999999999`), "line 4: json: cannot unmarshal number"},
		{line(4, `"tokens":0`, `"tokens":1e99`), "line 4: ratelimit: Tokens is 1e+99"},
		{line(4, `"key":"`, `"key":"*`), "line 4: "}, // illegal base64
	} {
		next := newSite(t, slowRule(1, 3))
		_, err := next.Restore(strings.NewReader(c.text))
		if err == nil || !strings.HasPrefix(err.Error(), "httplimit: snapshot: "+c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
		if next.Stats()[0].Table.Keys != 0 {
			t.Errorf("%v: something is restored", err)
		}
	}
	small := newSite(t, slowRule(1, 3), WithLimiterOptions(tb.WithMaxKeys(1)))
	_, err := small.Restore(strings.NewReader(good))
	want := `line 4: rule "r" has more buckets than its table can hold, which is 1`
	if err == nil || !strings.HasSuffix(err.Error(), want) || small.Stats()[0].Table.Keys != 0 {
		t.Errorf("%v, want %s", err, want)
	}
	// An operator may remove the line of a bucket, which forgives its client.
	if _, done := s.restarted(line(4, lines[3], ""), slowRule(1, 3)); done.Buckets != 1 {
		t.Errorf("%+v, want a bucket", done)
	}
}

// A hold stays across a restart. The version before has no holds, and is read.
func TestSnapshotKeepsHolds(t *testing.T) {
	s := newSite(t, slowRule(0.001, 3))
	s.get("K: 1")
	s.get("K: 3")
	before := strings.Replace(unzip(t, s.snapshot()), `"version":6`, `"version":5`, 1)
	next, _ := s.restarted(zip(before), slowRule(0.001, 3))
	next.granted(2, "K: 1")
	next.granted(2, "K: 3")
	for value, d := range map[string]time.Duration{"1": time.Hour, "4": math.MaxInt64} {
		key := string(compositekey.Append(nil, value))
		if err := s.policy.Load().rules[0].table.Hold(t.Context(), key, s.now.Add(d)); err != nil {
			t.Fatal(err)
		}
	}
	next, _ = s.restarted(s.snapshot(), slowRule(0.001, 3))
	next.now = next.now.Add(time.Hour)
	next.granted(0, "K: 1")
	next.granted(3, "K: 3")
	next.now = next.now.Add(24 * time.Hour)
	next.granted(3, "K: 1")
	next.granted(0, "K: 4")
}

// A wrong bit of a snapshot is an error, unless gzip does not use it.
func TestDamagedSnapshotsAreErrors(t *testing.T) {
	s := newSite(t, slowRule(1, 3))
	s.granted(3, "K: 1")
	s.get("K: 2")
	good := s.snapshot()
	for i := range 8 * len(good) {
		bad := []byte(good)
		bad[i/8] ^= 1 << (i % 8)
		next := newSite(t, slowRule(1, 3))
		next.now = s.now
		_, err := next.Restore(bytes.NewReader(bad))
		if n := next.Stats()[0].Table.Keys; err != nil && n > 0 ||
			err == nil && next.snapshot() != good {
			t.Errorf("bit %d of byte %d is wrong: %v, %d buckets", i%8, i/8, err, n)
		}
	}
}

// A reload that raises a limit while a snapshot is written leaves no bucket out that is not full.
func TestReloadDuringASnapshot(t *testing.T) {
	s := newSite(t, slowRule(1, 3))
	for i := range 1000 { // more than a buffer of gzip holds
		s.granted(3, sprintf("K: %d-%s", i, strings.Repeat("x", 100)))
	}
	s.now = s.now.Add(time.Hour) // they are full again
	s.get("K: drained")
	var b bytes.Buffer
	if err := s.Snapshot(&onFirstWrite{Writer: &b, do: func() {
		s.reload(slowRule(1, 10))
	}}); err != nil {
		t.Fatal(err)
	}
	_, done := s.restarted(b.String(), slowRule(1, 10))
	if done.Buckets < 2 {
		t.Errorf("%+v: no bucket with the limit before is there", done)
	}
}

type onFirstWrite struct {
	io.Writer
	do func()
}

func (w *onFirstWrite) Write(b []byte) (int, error) {
	if do := w.do; do != nil {
		w.do = nil
		do()
	}
	return w.Writer.Write(b)
}

func zip(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text) // a Buffer has no error
	_ = w.Close()
	return b.String()
}

func unzip(t *testing.T, snapshot string) string {
	r, err := gzip.NewReader(strings.NewReader(snapshot))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestSnapshotReportsErrorsOfTheWriter(t *testing.T) {
	s := newSite(t, slowRule(1, 3))
	s.get("K: 1")
	r, w := io.Pipe()
	_ = r.Close()
	if err := s.Snapshot(w); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}
