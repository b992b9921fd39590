package httplimit

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"regexp"

	"github.com/seed-181794aa/ratelimit/internal/clientaddr"
	"github.com/seed-181794aa/ratelimit/internal/compositekey"
)

// ErrNoBucket is in an error of Limiter.Reset if there is no such bucket.
var ErrNoBucket = errors.New("httplimit: no such bucket")

// Resetter is what the limiters of a Store must be for Limiter.Reset. The limiters of a Memory and
// of tb/redis are Resetters.
type Resetter interface {
	// Reset makes key's bucket full, and forgives its debt.
	Reset(ctx context.Context, key string) error
}

// Reset makes one bucket full and forgives its debt, so that a client that was refused may go on at
// once. rule is the label of the rule, as in Decision.Rule: a parent network is a rule of its own.
// key is the key as FormatKey writes it, and may have any address of a network in its place.
//
// key may also be as FormatMaskedKey writes it. Then Reset looks for the hashes in all keys of the
// rule, so the buckets must be in a Memory.
//
// The error is an ErrNoBucket if the policy has no such rule, the rule has no such key, or no key
// has the hashes. A Store fails as in a request: see WithTimeout.
func (l *Limiter) Reset(rule, key string) error {
	for _, r := range l.policy.Load().rules {
		if r.label == rule {
			return l.reset(r, key)
		}
	}
	return fmt.Errorf("%w: the policy has no rule %q", ErrNoBucket, rule)
}

func (l *Limiter) reset(r *rule, text string) error {
	limiter, ok := r.limiters[0].(Resetter)
	if !ok {
		return fmt.Errorf("httplimit: the limiter %T cannot reset a bucket", r.limiters[0])
	}
	keys, err := r.keysOf(text)
	if err != nil {
		return err
	}
	ctx := context.Background()
	if l.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.timeout)
		defer cancel()
	}
	for _, key := range keys {
		err = errors.Join(err, limiter.Reset(ctx, key))
		if r.blocksLater() {
			err = errors.Join(err, limiter.Reset(ctx, r.standingKey(key)))
		}
	}
	return err
}

var masked = regexp.MustCompile(`=sha256:[0-9a-f]{12}( |$)`)

// keysOf returns the keys whose text is the key of a bucket, as the store has them.
func (r *rule) keysOf(text string) (keys []string, err error) {
	parts, ok := ParseKey(text)
	key, isKey := r.keyOf(parts)
	switch {
	case !ok || !isKey:
		return nil, fmt.Errorf("%w: rule %s has no key %s", ErrNoBucket, r.label, text)
	case !masked.MatchString(text):
		return []string{key}, nil
	case r.table == nil:
		return nil, fmt.Errorf("%w: a hash is found only among keys in memory", ErrNoBucket)
	}
	for key := range r.table.Snapshot() {
		if parts := r.partsOf(key); FormatMaskedKey(parts) == text || FormatKey(parts) == text {
			keys = append(keys, key)
		}
	}
	if keys == nil {
		err = fmt.Errorf("%w: rule %s has no key with the hash", ErrNoBucket, r.label)
	}
	return keys, err
}

var longValue = regexp.MustCompile(`^sha256:([0-9a-f]{64})$`)

// keyOf returns the key with these parts, as the store has it. It reports false if they are not the
// parts of the rule's keys.
func (r *rule) keyOf(parts []KeyPart) (string, bool) {
	asText := r.table == nil
	var key []byte
	for i, p := range parts {
		if i == len(r.sources) || p.Name != r.sources[i].name {
			return "", false
		}
		if i > 0 && asText {
			key = append(key, compositekey.Separator)
		}
		switch s, long := &r.sources[i], longValue.FindStringSubmatch(p.Value); {
		case s.networks != nil:
			a, ok := s.readAddress(p.Value)
			if !ok {
				return "", false
			}
			key = s.appendAddress(key, a, asText)
		case long != nil:
			sum, _ := hex.DecodeString(long[1])
			key = appendDigest(key, sum, asText)
		default:
			key = appendValue(key, p.Value, asText)
		}
	}
	return string(key), len(parts) == len(r.sources)
}

// readAddress reads an address as it is in a KeyPart, or an address of the network that is there.
func (s *source) readAddress(text string) (netip.Addr, bool) {
	if text == string(s.networks.AppendNetwork(nil, netip.Addr{})) {
		return netip.Addr{}, true
	}
	network, ok := clientaddr.ParseNetwork(text)
	a := s.networks.Network(network.Addr())
	return a, ok && (network.IsSingleIP() || text == string(s.networks.AppendNetwork(nil, a)))
}

// partsOf is the inverse of keyOf for a key in memory. A second bucket has none: see standingKey.
func (r *rule) partsOf(key string) (parts []KeyPart) {
	for text, isDigest := range compositekey.All(key) {
		if len(parts) == len(r.sources) {
			return nil
		}
		s := &r.sources[len(parts)]
		switch {
		case s.networks != nil:
			a, _ := netip.AddrFromSlice([]byte(text))
			text = string(s.networks.AppendNetwork(nil, a))
		case isDigest:
			text = "sha256:" + hex.EncodeToString([]byte(text))
		}
		parts = append(parts, KeyPart{s.name, text})
	}
	return parts
}
