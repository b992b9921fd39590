package replay

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"hash/maphash"
	"slices"
	"unsafe"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
	"github.com/seed-181794aa/ratelimit/internal/clientaddr"
	"github.com/seed-181794aa/ratelimit/internal/compositekey"
	"github.com/seed-181794aa/ratelimit/internal/hostname"
)

// keyer finds the clients of requests, for the modes with --key. It composes the key of a request
// from its parts.
type keyer struct {
	parts   []func(*accesslog.Record) []byte
	names   []string
	extra   []string // the fields that the parts need
	missing []uint64 // by part: the number of requests without it

	rules  clientaddr.Rules
	trusts bool // whether rules trust any proxy
	direct bool // whether the last client was the peer, and not of X-Forwarded-For

	buf, value []byte // reused by each call
	lines      [2]string

	clients   clients
	requests  uint64
	forwarded forwarded
}

const wantKey = "want ip, user, path, host or the name of a JSON field," +
	" and commas between several"

func newKeyer(o *Options) (*keyer, error) {
	if len(o.Keys) == 0 {
		return nil, fmt.Errorf("no key: %s", wantKey)
	}
	rules, err := clientaddr.New(cli.Prefixes(o.Trusted), 0, o.IPv6Prefix)
	k := &keyer{
		names: o.Keys, missing: make([]uint64, len(o.Keys)), rules: rules, trusts: len(o.Trusted) > 0,
		clients:   clients{byKey: make(map[string]*client), bound: o.MaxKeys},
		forwarded: forwarded{clients: make(map[uint64]struct{})},
	}
	standard := map[string]func(*accesslog.Record) []byte{
		"ip":   k.client,
		"user": func(rec *accesslog.Record) []byte { return rec.User },
		"host": k.host,
		"path": func(rec *accesslog.Record) []byte { return rec.Path },
	}
	for _, name := range o.Keys {
		part := standard[name]
		if part == nil {
			if !isFieldName(name) {
				return nil, fmt.Errorf("key %q: %s", name, wantKey)
			}
			i := len(k.extra)
			k.extra = append(k.extra, name)
			part = func(rec *accesslog.Record) []byte { return rec.Fields[i] }
		}
		k.parts = append(k.parts, part)
	}
	return k, err
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
		if len(value) > maxPart {
			sum := sha256.Sum256(value)
			k.buf = compositekey.AppendDigest(k.buf, fmt.Sprintf("sha256:%x", sum[:16]))
		} else {
			k.buf = compositekey.Append(k.buf, value)
		}
	}
	return k.buf
}

// maxPart is the longest part that a key holds in full, in bytes. Clients choose their
// paths, up to megabytes, and the bounds of the tables count keys. A longer part is replaced by its
// SHA-256: two with the same 128 bits cannot be found even on purpose.
const maxPart = 256

// client returns the address of the client as text: an IPv4 address, or the network of an
// IPv6 address. A peer that is not an address, such as a host name, is returned as it is.
func (k *keyer) client(rec *accesslog.Record) []byte {
	k.direct = true
	if !k.trusts && bytes.IndexByte(rec.Peer, ':') < 0 && bytes.IndexByte(rec.Peer, ',') < 0 {
		return rec.Peer // most lines need no parsing
	}
	peer, lines := k.origin(rec)
	address := k.rules.Client(view(peer), lines)
	k.direct = len(lines) == 0 || address == k.rules.Client(view(peer), nil)
	switch {
	case !address.IsValid():
		return peer
	case address.IsLoopback():
		return address.AppendTo(k.value[:0]) // and not ::/64
	}
	k.value = k.rules.AppendNetwork(k.value[:0], k.rules.Network(address))
	return k.value
}

// host returns the host in the one spelling that the key of a policy has.
func (k *keyer) host(rec *accesslog.Record) []byte {
	host := view(rec.Host)
	k.value = append(k.value[:0], cmp.Or(hostname.Bare(host), host)...)
	return k.value
}

// origin returns the peer and the lines of X-Forwarded-For, valid until the next call.
//
// Where the log has a list instead of the peer, the peer itself was not logged. It wrote the
// last entry of the list, which takes its place. The other entries count as X-Forwarded-For.
func (k *keyer) origin(rec *accesslog.Record) (peer []byte, lines []string) {
	peer, lines = rec.Peer, k.lines[:0]
	if k.trusts && len(rec.Forwarded) > 0 {
		lines = append(lines, view(rec.Forwarded))
	}
	if i := bytes.LastIndexByte(peer, ','); i >= 0 {
		lines = append(lines, view(peer[:i]))
		peer = bytes.TrimSpace(peer[i+1:])
	}
	return peer, lines
}

// view returns b as a string without a copy. It is valid as long as b does not change.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// paths is the seed of the hashes of paths, which are only compared.
var paths = maphash.MakeSeed()

func (k *keyer) fields() []string { return k.extra }

// pack returns the client of a request. X-Forwarded-For is of interest if the client
// is the peer.
func (k *keyer) pack(rec *accesslog.Record, _ accesslog.Format) pending {
	c := k.clients.of(k.key(rec))
	if k.requests++; k.requests <= firstSample || k.requests%everySample == 0 {
		if k.direct {
			k.forwarded.add(rec.Forwarded)
		}
		if c.habit == nil {
			c.habit = newHabit(rec.Agent)
		}
		c.habit.add(rec)
	}
	return pending{client: c, path: uint32(maphash.Bytes(paths, rec.Path))}
}

// fillKeys fills in the keys, what the log lacks of them, and whether the clients may be proxies.
func (k *keyer) fillKeys(rep *Report) {
	rep.Keys, rep.KeysExact = uint64(len(k.clients.byKey)), !k.clients.more
	for i, name := range k.names {
		rep.Missing[name] = k.missing[i]
	}
	if part := slices.Index(k.names, "ip"); part >= 0 {
		if rep.Clients.fill(rep.Requests, &k.clients, part, &k.forwarded) {
			rep.Doubts = append(rep.Doubts, rep.Clients.doubt(rep))
		} else if len(rep.Clients.Proxies) > 0 {
			rep.remark = rep.Clients.doubt(rep)
		}
	}
}
