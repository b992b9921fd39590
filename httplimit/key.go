package httplimit

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"unsafe"

	"github.com/seed-181794aa/ratelimit/internal/compositekey"
)

// source is where a key's value is in a request. Exactly one field beside name is set.
type source struct {
	name    string // as in the policy
	address bool
	host    bool
	header  string
	query   string
	claim   string
	custom  func(*http.Request) string
}

// canonical returns the spelling of a key that all its spellings have in common: upper
// and lower case are the same in the names of header fields, and nowhere else.
func canonical(key string) string {
	if name, ok := strings.CutPrefix(key, "header:"); ok {
		return "header:" + strings.ToLower(name)
	}
	return key
}

// newSource returns the source of a key, and false if there is none. What the program has
// registered comes first.
func newSource(name string, custom map[string]func(*http.Request) string) (source, bool) {
	s := source{name: name, custom: custom[canonical(name)]}
	if s.custom != nil {
		return s, true
	}
	kind, part, _ := strings.Cut(name, ":")
	switch kind {
	case "ip":
		s.address = part == "address"
		return s, s.address
	case "header":
		// The server has taken Host out of the headers.
		if s.host = strings.EqualFold(part, "host"); !s.host {
			s.header = http.CanonicalHeaderKey(part)
		}
	case "query":
		s.query = part
	case "jwt":
		s.claim = part
	default:
		return s, false
	}
	return s, part != ""
}

// value returns the key's value in c's request, the first of several, and "" if it is
// missing.
func (s *source) value(c *call) string {
	switch {
	case s.custom != nil:
		return s.custom(c.r)
	case s.header != "":
		return first(c.r.Header[s.header])
	case s.query != "":
		v, _ := queryValue(c.r.URL.RawQuery, s.query)
		return v
	case s.claim != "":
		return claimText(c.claim(s.claim))
	case s.host:
		return c.r.Host
	case c.client().IsValid():
		return c.client().String()
	}
	return ""
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// maxPart is the length of the longest value that is part of a key as it is. A longer value
// is replaced by its SHA-256.
const maxPart = 128

// appendPart appends the part of a key that s is, and reports whether s has a value. A part
// without a value is empty.
func (s *source) appendPart(key []byte, c *call) ([]byte, bool) {
	if s.address { // never missing: an unknown address is a value, too
		n := c.network()
		if n.Is4() {
			a := n.As4()
			return compositekey.Append(key, a[:]), true
		}
		a := n.As16()
		return compositekey.Append(key, a[:]), true
	}
	v := s.value(c)
	if len(v) > maxPart {
		// The hash reads the bytes of v and does not keep them, so v is not copied.
		sum := sha256.Sum256(unsafe.Slice(unsafe.StringData(v), len(v)))
		return compositekey.AppendDigest(key, sum[:]), true
	}
	return compositekey.Append(key, v), v != ""
}

// readable returns the value of a part for people.
func (s *source) readable(c *call) string {
	if s.address {
		return string(c.l.address.AppendNetwork(nil, c.network()))
	}
	v := s.value(c)
	if len(v) > maxPart {
		sum := sha256.Sum256([]byte(v))
		return "sha256:" + hex.EncodeToString(sum[:])
	}
	return v
}

// KeyPart is one part of the key of a bucket: the name of a key in Rule.Keys, and the value
// that a request has for it.
type KeyPart struct {
	Name string
	// Value is "" if the request lacks the key. For ip:address it is the address, the
	// network that has one bucket, or "unknown". A value of more than 128 bytes is
	// replaced by "sha256:" and its hash.
	Value string
}

// FormatKey returns a key on one line, for people and logs: "everybody" if it has no parts,
// or else name=value for each part. Values with spaces, quotes or bytes that are not
// printable ASCII are quoted as in Go, so that no value can be taken for another part.
func FormatKey(key []KeyPart) string {
	if len(key) == 0 {
		return "everybody"
	}
	var text []byte
	for i, p := range key {
		if i > 0 {
			text = append(text, ' ')
		}
		text = append(append(text, p.Name...), '=')
		if !printable(p.Value) || strings.ContainsAny(p.Value, ` "`) {
			text = strconv.AppendQuote(text, p.Value)
		} else {
			text = append(text, p.Value...)
		}
	}
	return string(text)
}
