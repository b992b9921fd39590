package replay

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/accesslog"
)

// keyer composes the key of a request from its parts. Its length precedes each part, so
// different lists of parts give different keys.
type keyer struct {
	parts   []func(*accesslog.Record) []byte
	names   []string
	missing []uint64 // by part: the number of requests without it
	prefix  int      // bits of an IPv6 address that make a client

	buf, address, digest []byte // reused by each call
}

const wantKey = "want ip, user, path, host or the name of a JSON field," +
	" and commas between several"

// newKeyer returns a keyer for the named parts, and the JSON fields that it needs.
func newKeyer(names []string, ipv6Prefix int) (*keyer, []string, error) {
	if len(names) == 0 {
		return nil, nil, fmt.Errorf("no key: %s", wantKey)
	}
	k := &keyer{names: names, missing: make([]uint64, len(names)), prefix: ipv6Prefix}
	var extra []string
	for _, name := range names {
		part, ok := k.standardPart(name)
		if !ok {
			if !isFieldName(name) || isMisspelt(name, "ip", "user", "path", "host") {
				return nil, nil, fmt.Errorf("key %q: %s", name, wantKey)
			}
			i := len(extra)
			extra = append(extra, name)
			part = func(rec *accesslog.Record) []byte { return rec.Fields[i] }
		}
		k.parts = append(k.parts, part)
	}
	return k, extra, nil
}

// standardPart returns a part that every format has, by its name.
func (k *keyer) standardPart(name string) (func(*accesslog.Record) []byte, bool) {
	switch name {
	case "ip":
		return k.client, true
	case "user":
		return func(rec *accesslog.Record) []byte { return rec.User }, true
	case "host":
		return func(rec *accesslog.Record) []byte { return rec.Host }, true
	case "path":
		return func(rec *accesslog.Record) []byte { return rec.Path }, true
	}
	return nil, false
}

// isMisspelt reports whether a name is one of the words in other letters or with a suffix
// that another program would understand: IP, ip+path.
func isMisspelt(name string, words ...string) bool {
	end := strings.IndexAny(name, "+:")
	if end < 0 {
		end = len(name)
	}
	return slices.ContainsFunc(words, func(word string) bool {
		return strings.EqualFold(name[:end], word)
	})
}

// key returns the key of a request, valid until the next call. A part that the request does
// not have is empty, so all requests without it share a bucket. The keyer counts them,
// because that is seldom intended.
func (k *keyer) key(rec *accesslog.Record) []byte {
	k.buf = k.buf[:0]
	for i, part := range k.parts {
		value := part(rec)
		if len(value) == 0 {
			k.missing[i]++
		}
		length := uint64(len(value)) << 1
		if len(value) > maxPart {
			k.digest = appendDigest(k.digest[:0], value)
			value, length = k.digest, uint64(len(k.digest))<<1|1
		}
		k.buf = binary.AppendUvarint(k.buf, length)
		k.buf = append(k.buf, value...)
	}
	return k.buf
}

// splitKey returns the parts of a key.
func splitKey(key string) []string {
	var values []string
	for b := []byte(key); len(b) > 0; {
		n, width := binary.Uvarint(b)
		n, b = n>>1, b[width:]
		values = append(values, string(b[:n]))
		b = b[n:]
	}
	return values
}

// maxPart is the longest part that a key holds in full, in bytes. Clients choose their
// paths, up to megabytes, and the bounds of the tables count keys.
const maxPart = 256

// A digest has the first digestPrefix bytes of a part and digestSum bytes of its SHA-256:
// 80 characters with the label between them, which a report shows in full. Two parts with
// the same 128 bits cannot be found even on purpose.
const (
	digestPrefix = 40
	digestSum    = 16
)

// appendDigest appends the digest of a part.
func appendDigest(b, part []byte) []byte {
	n := digestPrefix
	for n > 0 && !utf8.RuneStart(part[n]) {
		n--
	}
	sum := sha256.Sum256(part)
	b = append(b, part[:n]...)
	b = append(b, "…sha256:"...)
	return hex.AppendEncode(b, sum[:digestSum])
}

// client returns the address that stands for a client: IPv4 in full, also where it
// was mapped into IPv6, and of IPv6 the network, since a client can choose freely in
// its own. What is no address (a host name) is its own client.
func (k *keyer) client(rec *accesslog.Record) []byte {
	if bytes.IndexByte(rec.IP, ':') < 0 {
		return rec.IP
	}
	addr, ok := parseAddr(string(rec.IP))
	if !ok {
		return rec.IP
	}
	addr = addr.Unmap()
	if addr.Is4() || k.prefix == addr.BitLen() {
		k.address = addr.AppendTo(k.address[:0])
		return k.address
	}
	network, _ := addr.Prefix(k.prefix) // the prefix was checked
	k.address = network.AppendTo(k.address[:0])
	return k.address
}

// parseAddr parses an address with or without a port. It drops an IPv6 zone.
func parseAddr(s string) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(strings.Trim(s, "[]"))
	if err != nil {
		withPort, err := netip.ParseAddrPort(s)
		return withPort.Addr().WithZone(""), err == nil
	}
	return addr.WithZone(""), true
}
