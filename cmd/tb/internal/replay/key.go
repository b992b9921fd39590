package replay

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/accesslog"
)

// keyer composes the key of a request from its parts. Each part is preceded by its
// length, so that no two lists of parts give the same key, whatever they contain.
// A part that is too long is replaced by its digest.
type keyer struct {
	parts   []func(*accesslog.Record) []byte
	names   []string
	missing []uint64 // per part: how many requests did not have it
	prefix  int      // bits of an IPv6 address that make a client
	key     []byte   // reused from call to call, as are
	ip      []byte
	long    []byte
}

// wantKey says what can be part of a key.
const wantKey = "want ip, user, path, host or the name of a JSON field," +
	" and commas between several"

// newKeyer returns a keyer for the named parts, and the JSON fields it needs the log
// to be read with.
func newKeyer(names []string, ipv6Prefix int) (*keyer, []string, error) {
	if len(names) == 0 {
		return nil, nil, fmt.Errorf("no key: %s", wantKey)
	}
	k := &keyer{names: names, missing: make([]uint64, len(names)), prefix: ipv6Prefix}
	var extra []string
	for _, name := range names {
		part, ok := k.standard(name)
		if !ok {
			if !isFieldName(name) || misspelt(name, "ip", "user", "path", "host") {
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

// standard returns the part of that name if it is one that every format has.
func (k *keyer) standard(name string) (func(*accesslog.Record) []byte, bool) {
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

// misspelt says whether a name that passes for that of a field is rather one of the words
// in other letters, or composed with it in another way than is understood: IP, ip+path.
func misspelt(name string, words ...string) bool {
	end := strings.IndexAny(name, "+:")
	if end < 0 {
		end = len(name)
	}
	return slices.ContainsFunc(words, func(word string) bool {
		return strings.EqualFold(name[:end], word)
	})
}

// of returns the key of a request, valid until the next call. A part that the request
// does not have is empty, so all requests without it share a bucket; they are counted,
// since that is seldom what was meant.
func (k *keyer) of(rec *accesslog.Record) []byte {
	k.key = k.key[:0]
	for i, part := range k.parts {
		value := part(rec)
		if len(value) == 0 {
			k.missing[i]++
		}
		length := uint64(len(value)) << 1
		if len(value) > maxPart {
			k.long = appendDigest(k.long[:0], value)
			value, length = k.long, uint64(len(k.long))<<1|1
		}
		k.key = binary.AppendUvarint(k.key, length)
		k.key = append(k.key, value...)
	}
	return k.key
}

// parts splits a key into what it was composed of.
func parts(key string) []string {
	var values []string
	for b := []byte(key); len(b) > 0; {
		n, width := binary.Uvarint(b)
		n, b = n>>1, b[width:]
		values = append(values, string(b[:n]))
		b = b[n:]
	}
	return values
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
		k.ip = addr.AppendTo(k.ip[:0])
		return k.ip
	}
	network, _ := addr.Prefix(k.prefix) // the prefix was checked
	k.ip = network.AppendTo(k.ip[:0])
	return k.ip
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
