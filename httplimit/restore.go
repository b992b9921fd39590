package httplimit

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// maxSnapshotLine bounds a line of a snapshot, in bytes. The line of a rule is the longest.
const maxSnapshotLine = 1 << 20

// Restored describes a snapshot that Restore has read.
type Restored struct {
	Time    time.Time // of the snapshot
	Buckets int       // those that the limiter has got
	// Skipped has a line for each rule of the snapshot whose buckets the limiter has not got,
	// with the reason: there is no rule of that set, name and limit_keys, or addresses have other
	// prefixes, or the buckets are in a Store.
	Skipped []string
}

// Restore gives the rules the buckets of a snapshot. It must return before the first request. Each
// bucket gets what the rate has supplied since, by the wall clock. If the limit of a rule has
// changed, its buckets keep their tokens, but not more than the capacity, and their debt.
//
// Restore returns an error, and changes nothing, if r has anything but a whole snapshot of this
// version, or more buckets for a rule than its table can hold. The error has the number of the
// line.
func (l *Limiter) Restore(r io.Reader) (Restored, error) {
	s := &restoration{
		limiter: l, rules: map[string]*rule{}, seen: map[string]bool{}, sum: newChecksum(),
	}
	if o, err := tb.Apply(l.limiterOptions...); err == nil { // as New has checked
		s.maxKeys = o.MaxKeys
	}
	for _, r := range l.policy.Load().rules {
		s.rules[r.snapshotRule().name()] = r
	}
	if err := s.read(r); err != nil {
		return Restored{}, fmt.Errorf("httplimit: snapshot: line %d: %w", s.line, err)
	}
	copy(l.ownSecret[:], s.head.Secret)
	done := Restored{Time: s.head.Time, Skipped: s.skipped}
	for _, t := range s.tables {
		if err := t.restore(); err != nil {
			return done, fmt.Errorf("httplimit: snapshot: rule %q: %w", t.rule.Name, err)
		}
		done.Buckets += len(t.states)
	}
	return done, nil
}

// restoration is the work of reading a snapshot.
type restoration struct {
	limiter *Limiter
	maxKeys int
	rules   map[string]*rule // by the set and the name
	line    int
	sum     hash.Hash32 // of the lines so far
	head    snapshotHead
	tables  []*savedTable
	table   *savedTable // of the last rule; nil before the first
	seen    map[string]bool
	skipped []string
}

// savedTable is the buckets of a rule.
type savedTable struct {
	rule   *rule // nil if they are skipped
	tiers  map[string]int
	known  map[string]bool // keys, as they are written
	keys   []string
	states []tb.State
}

// name is the same for two rules if and only if they have the same set and name.
func (s snapshotRule) name() string { return fmt.Sprintf("%q %q", s.Set, s.Rule) }

// snapshotLine is any line of a snapshot after the first: the last line, a rule or a bucket.
type snapshotLine struct {
	End bool `json:"end"`
	snapshotRule
	snapshotBucket
}

type snapshotBucket struct {
	Key    *string  `json:"key"`
	Tokens *float64 `json:"tokens"`
	At     *int64   `json:"at"`
	Tier   string   `json:"tier"`
}

// read reads the whole snapshot.
func (s *restoration) read(r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxSnapshotLine)
	ended := false
	for lines.Scan() {
		s.line++
		var err error
		switch {
		case ended:
			err = errors.New("there is more after the end")
		case s.line == 1:
			err = s.readHead(lines.Bytes())
		default:
			ended, err = s.readLine(lines.Bytes())
		}
		if err != nil {
			return err
		}
		_, _ = s.sum.Write(lines.Bytes()) // a hash returns no error
		_, _ = s.sum.Write([]byte{'\n'})
	}
	if ended {
		return lines.Err()
	}
	s.line++
	err := lines.Err()
	switch {
	case err == nil:
		return fmt.Errorf("the end is missing: %w", io.ErrUnexpectedEOF)
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("has more than %d bytes", maxSnapshotLine)
	}
	return err
}

func (s *restoration) readHead(line []byte) error {
	err := json.Unmarshal(line, &s.head)
	switch {
	case s.head.Format != snapshotFormat:
		return fmt.Errorf("is not the begin of a snapshot: want the format %q", snapshotFormat)
	case s.head.Version != snapshotVersion:
		return fmt.Errorf("the version is %d, want %d", s.head.Version, snapshotVersion)
	case err != nil:
		return err
	case len(s.head.Secret) != len(keySecret{}):
		return fmt.Errorf("the secret has %d bytes, want %d", len(s.head.Secret), len(keySecret{}))
	case s.head.Time.IsZero():
		return errors.New("there is no time")
	}
	return nil
}

func (s *restoration) readLine(line []byte) (ended bool, err error) {
	var l snapshotLine
	if err := json.Unmarshal(line, &l); err != nil {
		return false, err
	}
	switch {
	case l.Rule != "":
		return false, s.readRule(&l.snapshotRule)
	case l.Key != nil:
		return false, s.addBucket(&l.snapshotBucket)
	case l.End:
		if want := fmt.Sprintf(snapshotEnd, s.sum.Sum32()); string(line) != want {
			return false, fmt.Errorf("is %s, want %s: the snapshot is damaged", line, want)
		}
		return true, nil
	}
	return false, errors.New("want a rule, a key or the end")
}

func (s *restoration) readRule(saved *snapshotRule) error {
	name := saved.name()
	if s.seen[name] {
		return fmt.Errorf("rule %q is there twice", saved.Rule)
	}
	s.seen[name] = true
	s.table = &savedTable{}
	r := s.rules[name]
	why := ""
	switch {
	case r == nil:
		why = "the policy has no such rule"
	case r.table == nil:
		why = "its buckets are in a store"
	case !slices.Equal(r.snapshotRule().Keys, saved.Keys):
		why = "its limit_keys have changed"
	case !slices.Equal(r.snapshotRule().Prefixes, saved.Prefixes):
		why = "the prefixes of addresses have changed"
	default:
		s.table.rule, s.table.tiers, s.table.known = r, map[string]int{}, map[string]bool{}
		for i, tier := range r.byTier() {
			s.table.tiers[tier.tierName] = i
		}
		s.tables = append(s.tables, s.table)
		return nil
	}
	s.skipped = append(s.skipped, fmt.Sprintf("rule %q: %s", saved.Rule, why))
	return nil
}

func (s *restoration) addBucket(b *snapshotBucket) error {
	t := s.table
	switch {
	case t == nil:
		return errors.New("want a rule before its keys")
	case b.Tokens == nil || b.At == nil:
		return errors.New("want tokens and the time at")
	}
	state := tb.State{Tokens: *b.Tokens, At: time.Unix(0, *b.At)}
	if err := state.Validate(); err != nil || t.rule == nil {
		return err
	}
	if t.known[*b.Key] {
		return fmt.Errorf("the key is there twice in rule %q", t.rule.Name)
	}
	t.known[*b.Key] = true
	state.Tier = t.tiers[b.Tier] // 0 if the policy has no such tier any more
	if len(t.states) == s.maxKeys {
		return fmt.Errorf("rule %q has more buckets than its table can hold, which is %d",
			t.rule.Name, s.maxKeys)
	}
	key, err := base64.StdEncoding.DecodeString(*b.Key)
	if err != nil {
		return fmt.Errorf("the key: %w", err)
	}
	if len(key) > s.limiter.maxKeyLength {
		key = (*keySecret)(s.head.Secret).hashKey(key, 0)
	}
	t.keys, t.states = append(t.keys, string(key)), append(t.states, state)
	return nil
}

// restore gives the rule its buckets.
func (t *savedTable) restore() error {
	return t.rule.table.Restore(func(yield func(string, tb.State) bool) {
		for i, key := range t.keys {
			if !yield(key, t.states[i]) {
				return
			}
		}
	})
}
