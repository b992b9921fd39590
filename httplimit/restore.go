package httplimit

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Restored describes a snapshot that Restore has read.
type Restored struct {
	Time    time.Time // of the snapshot
	Buckets int       // those that the limiter has got
	// Skipped has a line for each rule of the snapshot whose buckets the limiter has not got: it has
	// no rule of that set, name and limit_keys, addresses have other prefixes, or the buckets are in
	// a Store.
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
	s := &restoration{maxKeys: l.maxKeys, rules: map[string]*rule{}}
	for _, r := range l.policy.Load().rules {
		if r.table != nil {
			s.rules[r.snapshotID()] = r
		}
	}
	if err := s.read(r); err != nil {
		return Restored{}, fmt.Errorf("httplimit: snapshot: line %d: %w", s.line, err)
	}
	done := Restored{Time: s.head.Time, Skipped: s.skipped}
	for _, t := range s.tables {
		if err := t.restore(); err != nil {
			return done, fmt.Errorf("httplimit: snapshot: rule %q: %w", t.rule.Name, err)
		}
		done.Buckets += len(t.buckets)
	}
	return done, nil
}

// restoration is the work of reading a snapshot.
type restoration struct {
	maxKeys int
	rules   map[string]*rule // with buckets in memory, by their snapshotID
	line    int
	head    snapshotHead
	tables  []*savedTable
	table   *savedTable // of the last rule; nil before the first
	skipped []string
}

// savedTable is the buckets of a rule.
type savedTable struct {
	rule    *rule // nil if they are skipped
	buckets []*snapshotBucket
}

// read reads the whole snapshot.
func (s *restoration) read(r io.Reader) error {
	s.line = 1
	plain, err := gzip.NewReader(r)
	if err != nil {
		return fmt.Errorf("is not the begin of a snapshot: %w", err)
	}
	in := json.NewDecoder(plain)
	if err := in.Decode(&s.head); err != nil {
		return fmt.Errorf("is not the begin of a snapshot: %w", err)
	}
	switch h := &s.head; {
	case h.Format != snapshotFormat:
		return fmt.Errorf("the format is %q, want %q", h.Format, snapshotFormat)
	case h.Version != snapshotVersion:
		return fmt.Errorf("the version is %d, want %d", h.Version, snapshotVersion)
	}
	in.DisallowUnknownFields()
	for {
		s.line++
		var line snapshotLine
		switch err := in.Decode(&line); {
		case errors.Is(err, io.EOF): // which gzip returns only after the checksum
			return nil
		case err != nil:
			return err
		case line.Rule != "":
			s.addRule(line.Rule)
		case line.Bucket == nil || s.table == nil:
			return errors.New("want a rule, or a bucket after its rule")
		default:
			if err := s.table.add(line.Bucket, s.maxKeys); err != nil {
				return err
			}
		}
	}
}

// addRule finds the rule that gets the buckets after its line.
func (s *restoration) addRule(id string) {
	s.table = &savedTable{rule: s.rules[id]}
	if s.table.rule == nil {
		s.skipped = append(s.skipped, fmt.Sprintf("rule %q: the policy has no such rule in memory", id))
		return
	}
	s.tables = append(s.tables, s.table)
}

func (t *savedTable) add(b *snapshotBucket, most int) error {
	if t.rule == nil {
		return nil
	}
	if err := b.state(t.rule.ruleState).Validate(); err != nil {
		return err
	}
	if len(t.buckets) == most {
		return fmt.Errorf("rule %q has more buckets than its table can hold, which is %d",
			t.rule.Name, most)
	}
	t.buckets = append(t.buckets, b)
	return nil
}

// restore gives the rule its buckets.
func (t *savedTable) restore() error {
	return t.rule.table.Restore(func(yield func(string, tb.State) bool) {
		for _, b := range t.buckets {
			if !yield(string(b.Key), b.state(t.rule.ruleState)) {
				return
			}
		}
	})
}
