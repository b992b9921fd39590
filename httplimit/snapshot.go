package httplimit

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"strconv"
	"time"
)

// snapshotFormat and snapshotVersion begin a snapshot. Another version is an error in Restore.
const (
	snapshotFormat  = "httplimit buckets"
	snapshotVersion = 3
)

// snapshotEnd is the last line of a snapshot, with the checksum of all lines before.
const snapshotEnd = `{"end":true,"crc32c":"%08x"}`

func newChecksum() hash.Hash32 { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) }

// snapshotHead is the first line of a snapshot.
type snapshotHead struct {
	Format  string    `json:"format"`
	Version int       `json:"version"`
	Time    time.Time `json:"time"`
	// Secret is the key of the hash that replaces long keys: see WithMaxKeyLength. With another
	// secret no client with a long key would find its bucket again.
	Secret []byte `json:"secret"`
}

// snapshotRule is the line before the buckets of a rule. A rule of another policy gets the buckets
// if it is equal.
type snapshotRule struct {
	Rule     string   `json:"rule"`
	Set      string   `json:"set,omitempty"`
	Keys     []string `json:"limit_keys"`
	Prefixes []int    `json:"prefixes,omitempty"` // of IPv4 and IPv6, if there is an address
}

func (r *rule) snapshotRule() snapshotRule {
	s := snapshotRule{Rule: r.Name, Set: r.set, Keys: append([]string{}, canonicals(r.Keys)...)}
	for i := range r.sources {
		if r.sources[i].address {
			ipv4, ipv6 := r.sources[i].networks.Bits()
			s.Prefixes = []int{ipv4, ipv6}
		}
	}
	return s
}

// Snapshot writes the buckets that are not full, for Restore in this process or in another. It
// writes a line of JSON for each rule and for each of its buckets: the bucket that will be full
// last is the first. The last line has a checksum, so Restore finds a damaged file. No request
// waits. A bucket that comes or goes meanwhile may be missing.
//
// The buckets of a Store are not part of a snapshot. The snapshot contains the keys of clients,
// such as API keys, and the secret with which long keys are hashed, so it must be kept private.
func (l *Limiter) Snapshot(w io.Writer) error {
	sum := newChecksum()
	out := bufio.NewWriterSize(io.MultiWriter(w, sum), 1<<16)
	enc := json.NewEncoder(out)
	err := enc.Encode(snapshotHead{
		snapshotFormat, snapshotVersion, l.clock().UTC(), l.ownSecret[:],
	})
	for _, r := range l.policy.Load().rules {
		if err != nil {
			break
		}
		if r.table == nil {
			continue
		}
		if err = enc.Encode(r.snapshotRule()); err == nil {
			err = r.writeBuckets(out)
		}
	}
	if err == nil {
		err = out.Flush()
	}
	if err == nil {
		_, err = fmt.Fprintf(w, snapshotEnd+"\n", sum.Sum32())
	}
	if err != nil {
		return fmt.Errorf("httplimit: snapshot: %w", err)
	}
	return nil
}

// byTier returns the rules with the limits of the table's tiers.
func (r *rule) byTier() map[int]*rule {
	all := map[int]*rule{0: r}
	if r.tiers != nil {
		for _, t := range r.tiers.rules {
			all[t.tierIndex] = t
		}
	}
	return all
}

// writeBuckets writes the lines of the rule's buckets that are not full.
func (r *rule) writeBuckets(out *bufio.Writer) error {
	tiers := r.byTier()
	var line []byte
	for key, s := range r.table.Snapshot() {
		t := tiers[s.Tier]
		if t == nil { // a tier that is in the policy no more
			t = r
		}
		if s.Tokens >= float64(t.Limit.Capacity) && r.isFull(key) {
			continue
		}
		line = base64.StdEncoding.AppendEncode(append(line[:0], `{"key":"`...), []byte(key))
		line = strconv.AppendFloat(append(line, `","tokens":`...), s.Tokens, 'g', -1, 64)
		line = strconv.AppendInt(append(line, `,"at":`...), s.At.UnixNano(), 10)
		line = append(line, t.tierField...)
		if _, err := out.Write(append(line, "}\n"...)); err != nil {
			return err
		}
	}
	return nil
}

// isFull reports whether a bucket is full now. A reload meanwhile may have raised its limit.
func (r *rule) isFull(key string) bool {
	level, err := r.table.Level(context.Background(), key)
	return err == nil && level.Full == 0
}
