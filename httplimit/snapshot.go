package httplimit

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// snapshotFormat and snapshotVersion begin a snapshot. Another version is an error in Restore.
const (
	snapshotFormat  = "httplimit buckets"
	snapshotVersion = 5
)

// snapshotHead is the first line of a snapshot.
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
	At     int64   `json:"at"` // in Unix nanoseconds
	Tier   string  `json:"tier,omitempty"`
}

// snapshotID returns the id of the rule, and the prefixes of addresses if they are in its keys. A
// rule of another policy gets the buckets if its text is the same.
func (r *rule) snapshotID() string {
	for i := range r.sources {
		if r.sources[i].address {
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

// writeBuckets writes the line of the rule, and the lines of its buckets that are not full.
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
		b := &snapshotBucket{[]byte(key), s.Tokens, s.At.UnixNano(), names[s.Tier]}
		if err := out.Encode(snapshotLine{Bucket: b}); err != nil {
			return err
		}
	}
	return nil
}

// state returns the state of the bucket, in the tier of that name or, if there is none, in that of
// the rule itself.
func (b *snapshotBucket) state(s *ruleState) tb.State {
	return tb.State{Tokens: b.Tokens, At: time.Unix(0, b.At), Tier: s.tiers[b.Tier]}
}
