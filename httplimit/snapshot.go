package httplimit

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// snapshotFormat and snapshotVersion begin a snapshot. Restore also reads the version before, which
// has no holds. Another version is an error.
const (
	snapshotFormat  = "httplimit buckets"
	snapshotVersion = 6
)

type snapshotHead struct {
	Format  string    `json:"format"`
	Version int       `json:"version"`
	Time    time.Time `json:"time"`
}

// snapshotLine is any other line: the snapshotID of a rule, or a bucket of the rule before.
type snapshotLine struct {
	Rule   string          `json:"rule,omitempty"`
	Bucket *snapshotBucket `json:"bucket,omitempty"`
}

type snapshotBucket struct {
	Key    []byte  `json:"key"`
	Tokens float64 `json:"tokens"`
	At     int64   `json:"at"`             // in Unix nanoseconds
	Held   int64   `json:"held,omitempty"` // the end of a hold, in Unix nanoseconds
	Tier   string  `json:"tier,omitempty"`
}

// snapshotID returns the id of the rule, and the prefixes of addresses if they are in its keys. A
// rule of another policy gets the buckets if its text is the same.
func (r *rule) snapshotID() string {
	for i := range r.sources {
		if r.sources[i].networks != nil {
			ipv4, ipv6 := r.sources[i].networks.Bits()
			return fmt.Sprintf("%s (prefixes %d and %d)", r.id, ipv4, ipv6)
		}
	}
	return r.id
}

// Snapshot writes the buckets that are not full, for Restore in this process or in another. It
// writes lines of JSON, compressed by gzip, whose checksum finds a damaged file: a line for each
// rule, and one for each of its buckets, of which the bucket that will be full last is the first.
// No request waits. A bucket that comes or goes meanwhile may be missing.
//
// The buckets of a Store are not part of a snapshot. The snapshot contains the keys of clients,
// such as API keys, so it must be kept private.
func (l *Limiter) Snapshot(w io.Writer) error {
	compressed, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // which is a valid level
	out := json.NewEncoder(compressed)
	err := out.Encode(snapshotHead{snapshotFormat, snapshotVersion, l.clock().UTC()})
	for _, r := range l.policy.Load().rules {
		if err == nil && r.table != nil {
			err = l.writeBuckets(out, r)
		}
	}
	if err = errors.Join(err, compressed.Close()); err != nil {
		return fmt.Errorf("httplimit: snapshot: %w", err)
	}
	return nil
}

func (l *Limiter) writeBuckets(out *json.Encoder, r *rule) error {
	if err := out.Encode(snapshotLine{Rule: r.snapshotID()}); err != nil {
		return err
	}
	names := map[int]string{}
	l.reload.Lock() // because a reload gives new names to tiers that are left
	for name, i := range r.ruleState.tiers {
		names[i] = name
	}
	l.reload.Unlock()
	for key, s := range r.table.Snapshot() {
		// A reload meanwhile may have raised the limit.
		if level, err := r.table.Level(context.Background(), key); err == nil && level.Full == 0 {
			continue
		}
		b := &snapshotBucket{[]byte(key), s.Tokens, s.At.UnixNano(), 0, names[s.Tier]}
		if last := time.Unix(0, math.MaxInt64); s.Held.After(last) {
			b.Held = math.MaxInt64
		} else if !s.Held.IsZero() {
			b.Held = s.Held.UnixNano()
		}
		if err := out.Encode(snapshotLine{Bucket: b}); err != nil {
			return err
		}
	}
	return nil
}

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
// version or the one before, or more buckets for a rule than its table can hold. The error has the
// number of the line.
func (l *Limiter) Restore(r io.Reader) (Restored, error) {
	l.reload.Lock() // because a reload replaces tables
	defer l.reload.Unlock()
	s := &restoration{l: l, rules: map[string]*rule{}, buckets: map[*rule][]savedBucket{}}
	for _, r := range l.policy.Load().rules {
		if r.table != nil {
			s.rules[r.snapshotID()] = r
		}
	}
	if err := s.read(r); err != nil {
		return Restored{}, fmt.Errorf("httplimit: snapshot: line %d: %w", s.line, err)
	}
	for r, buckets := range s.buckets {
		if err := r.table.Restore(func(yield func(string, tb.State) bool) {
			for _, b := range buckets {
				if !yield(b.key, b.state) {
					return
				}
			}
		}); err != nil {
			return s.done, fmt.Errorf("httplimit: snapshot: rule %q: %w", r.Name, err)
		}
		s.done.Buckets += len(buckets)
	}
	return s.done, nil
}

type restoration struct {
	l       *Limiter
	rules   map[string]*rule // that get buckets, by their snapshotIDs
	line    int
	done    Restored
	buckets map[*rule][]savedBucket
}

type savedBucket struct {
	key   string
	state tb.State
}

func (s *restoration) read(r io.Reader) error {
	s.line = 1
	plain, err := gzip.NewReader(r)
	if err != nil {
		return fmt.Errorf("is not the begin of a snapshot: %w", err)
	}
	in := json.NewDecoder(plain)
	var head snapshotHead
	switch err := in.Decode(&head); {
	case err != nil:
		return fmt.Errorf("is not the begin of a snapshot: %w", err)
	case head.Format != snapshotFormat:
		return fmt.Errorf("the format is %q, want %q", head.Format, snapshotFormat)
	case head.Version != snapshotVersion && head.Version != snapshotVersion-1:
		return fmt.Errorf("the version is %d, want %d", head.Version, snapshotVersion)
	}
	s.done.Time = head.Time
	in.DisallowUnknownFields()
	var current *rule // of the last line of a rule; nil if its buckets are skipped
	begun := false
	for {
		s.line++
		var line snapshotLine
		switch err := in.Decode(&line); {
		case errors.Is(err, io.EOF): // which gzip returns only after the checksum
			return nil
		case err != nil:
			return err
		case line.Rule != "":
			if current, begun = s.rules[line.Rule], true; current == nil {
				s.done.Skipped = append(s.done.Skipped,
					fmt.Sprintf("rule %q: the policy has no such rule in memory", line.Rule))
			}
		case line.Bucket == nil || !begun:
			return errors.New("want a rule, or a bucket after its rule")
		case current != nil:
			if err := s.add(current, line.Bucket); err != nil {
				return err
			}
		}
	}
}

// add adds a bucket in the tier of its name or, if there is none, in that of the rule itself.
func (s *restoration) add(r *rule, b *snapshotBucket) error {
	state := tb.State{Tokens: b.Tokens, At: time.Unix(0, b.At), Tier: r.ruleState.tiers[b.Tier]}
	if b.Held != 0 {
		state.Held = time.Unix(0, b.Held)
	}
	if err := state.Validate(); err != nil {
		return err
	}
	if len(s.buckets[r]) == s.l.maxKeys {
		return fmt.Errorf("rule %q has more buckets than its table can hold, which is %d", r.Name,
			s.l.maxKeys)
	}
	s.buckets[r] = append(s.buckets[r], savedBucket{string(b.Key), state})
	return nil
}
