package httplimit

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// threeRules is a policy with a rule for each kind of key.
const threeRules = `{"rules": [
	{"name": "net", "limit_keys": ["ip:address/64,/48"],
	 "algorithm_config": {"tokens_per_second": 0.1, "burst": 5, "parent_factor": 2}},
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

// restarted returns a new site at the same time, with the buckets of a snapshot.
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

// by is a request of a client.
func by(address string, lines ...string) *http.Request {
	r := request(lines...)
	r.RemoteAddr = "[" + address + "]:1"
	return r
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
	if n := strings.Count(text, `{"key"`); done.Buckets != n || n < 8 || len(done.Skipped) > 0 ||
		!done.Time.Equal(s.now) {
		t.Errorf("%+v of %d", done, n)
	}
	// The wall clock goes on while no process runs.
	s.now = s.now.Add(15 * time.Second)
	next, _ = s.restarted(text, threeRules)
	if got, want := strings.Join(levels(next), "\n"), strings.Join(levels(s), "\n"); got != want {
		t.Errorf("15 seconds later\n%s\nwant\n%s", got, want)
	}
	// Buckets that are full are not in a snapshot.
	s.now = s.now.Add(time.Hour)
	if text := s.snapshot(); strings.Contains(text, `{"key"`) {
		t.Error(text)
	}
}

func TestRestoreSkipsRulesWithOtherKeys(t *testing.T) {
	s := newSite(t, threeRules)
	s.send(by("2001:db8::1", "K: a"))
	text := s.snapshot()
	for _, c := range []struct {
		policy string
		opts   []Option
		want   string
	}{
		{threeRules, nil, "[]"},
		{strings.Replace(threeRules, `"key"`, `"other"`, 1), nil,
			`[rule "key": the policy has no such rule]`},
		{strings.Replace(threeRules, "header:k", "HEADER:k", 1), nil, ""},
		{strings.Replace(threeRules, "header:k", "header:K", 1), nil, "[]"},
		{strings.Replace(threeRules, "header:k", "query:k", 1), nil,
			`[rule "key": its limit_keys have changed]`},
		{threeRules, []Option{WithClientAddress(ClientAddress{IPv6Bits: 56})},
			`[rule "key": the prefixes of addresses have changed]`},
		{threeRules, []Option{WithClientAddress(ClientAddress{IPv4Bits: 24})},
			`[rule "net": the prefixes of addresses have changed ` +
				`rule "net/48": the prefixes of addresses have changed ` +
				`rule "key": the prefixes of addresses have changed]`},
		{threeRules, []Option{WithStore(answering{})}, `[rule "net": its buckets are in a store ` +
			`rule "net/48": its buckets are in a store rule "key": its buckets are in a store ` +
			`rule "all": its buckets are in a store]`},
	} {
		if c.want == "" {
			continue
		}
		if _, done := s.restarted(text, c.policy, c.opts...); sprint(done.Skipped) != c.want {
			t.Errorf("%v, want %s", done.Skipped, c.want)
		}
	}
}

func TestBadSnapshotsAreErrorsAndChangeNothing(t *testing.T) {
	s := newSite(t, slowRule(1, 3))
	s.granted(3, "K: 1")
	s.granted(3, "K: 2")
	good := s.snapshot()
	lines := strings.SplitAfter(good, "\n")
	if len(lines) != 6 {
		t.Fatalf("%q", lines)
	}
	line := func(n int, old, next string) string {
		all := append([]string(nil), lines...)
		if !strings.Contains(all[n-1], old) {
			t.Fatalf("no %s in %s", old, all[n-1])
		}
		all[n-1] = strings.Replace(all[n-1], old, next, 1)
		return strings.Join(all, "")
	}
	for _, c := range []struct{ text, want string }{
		{"", "line 1: the end is missing: unexpected EOF"},
		{"{}", `line 1: is not the begin of a snapshot: want the format "httplimit buckets"`},
		{"\x00\x01", `line 1: is not the begin of a snapshot: want the format "httplimit buckets"`},
		{line(1, `"version":3`, `"version":1`), "line 1: the version is 1, want 3"},
		{line(1, `"secret":"`, `"secret":"AAAA`), "line 1: the secret has 35 bytes, want 32"},
		{line(1, `"time":`, `"times":`), "line 1: there is no time"},
		{strings.Join(lines[:2], ""), "line 3: the end is missing: unexpected EOF"},
		{strings.Join(lines[:4], ""), "line 5: the end is missing: unexpected EOF"},
		{good[:len(good)-60], "line 4: unexpected end of JSON input"},
		{good[:len(good)-10], "line 5: unexpected end of JSON input"},
		{line(4, lines[3], lines[2]), `line 4: the key is there twice in rule "r"`},
		{line(4, lines[3], ""), `line 4: is {"end":true,"crc32c":"`},
		{good + good, "line 6: there is more after the end"},
		{line(2, `{"rule"`, `{"rules"`), "line 2: want a rule, a key or the end"},
		{line(2, lines[1], ""), "line 2: want a rule before its keys"},
		{line(3, lines[2], lines[1]), `line 3: rule "r" is there twice`},
		{line(4, `"tokens":`, `"tokens":"`), "line 4: invalid character"},
		{line(4, `"tokens":`, `"token":`), "line 4: want tokens and the time at"},
		{line(4, `"at":`, `"at":9999999999`), "line 4: json: cannot unmarshal number"},
		{line(4, `"tokens":0`, `"tokens":1e99`), "line 4: tb: Tokens is 1e+99"},
		{line(4, `"tokens":0`, `"tokens":[]`), "line 4: json: cannot unmarshal array"},
		{line(4, `"key":"`, `"key":"*`), "line 4: the key: illegal base64 data"},
		{line(4, "{", strings.Repeat(" ", 2<<20)+"{"), "line 4: has more than 1048576 bytes"},
	} {
		next := newSite(t, slowRule(1, 3))
		secret := next.ownSecret
		_, err := next.Restore(strings.NewReader(c.text))
		if err == nil || !strings.HasPrefix(err.Error(), "httplimit: snapshot: "+c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
		if next.Stats()[0].Table.Keys != 0 || next.ownSecret != secret {
			t.Errorf("%v: something is restored", err)
		}
	}
	small := newSite(t, slowRule(1, 3), WithLimiterOptions(tb.WithMaxKeys(1)))
	_, err := small.Restore(strings.NewReader(good))
	want := `line 4: rule "r" has more buckets than its table can hold, which is 1`
	if err == nil || !strings.HasSuffix(err.Error(), want) || small.Stats()[0].Table.Keys != 0 {
		t.Errorf("%v, want %s", err, want)
	}
}

// No bit of a snapshot can be wrong without an error.
func TestDamagedSnapshotsAreErrors(t *testing.T) {
	s := newSite(t, slowRule(1, 3))
	s.granted(3, "K: 1")
	s.get("K: 2")
	good := s.snapshot()
	for i := range 8 * (len(good) - 1) { // the last line may have no line feed
		bad := []byte(good)
		bad[i/8] ^= 1 << (i % 8)
		next := newSite(t, slowRule(1, 3))
		if _, err := next.Restore(bytes.NewReader(bad)); err == nil || next.Stats()[0].Table.Keys > 0 {
			t.Errorf("bit %d of byte %d is wrong: %v, %+v", i%8, i/8, err, next.Stats()[0].Table)
		}
	}
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

// A longer key than the limiter keeps is hashed as in a request.
func TestRestoreHashesKeysThatAreTooLong(t *testing.T) {
	s := newSite(t, slowRule(1, 3), WithMaxKeyLength(1024))
	key := func(length int) string { return "K: " + strings.Repeat("x", length) }
	lengths := []int{62, 63, 64, 100} // a key with 63 bytes and its length is as long as allowed
	for _, length := range lengths {
		s.granted(3, key(length))
	}
	next, _ := s.restarted(s.snapshot(), slowRule(1, 3))
	for _, length := range lengths {
		next.granted(0, key(length))
	}
}
