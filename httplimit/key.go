package httplimit

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unsafe"

	"github.com/seed-181794aa/ratelimit/internal/compositekey"
)

// source reads the value of a key from requests.
type source struct {
	name    string // as in the policy
	address bool   // ip:address
	// value returns the key's first value in c's request, or "" if the request lacks the key.
	value func(c *call) string
}

// canonical returns the same spelling for all spellings of a key. Upper and lower case are the
// same in the names of header fields, and nowhere else.
func canonical(key string) string {
	if name, ok := strings.CutPrefix(key, "header:"); ok {
		return "header:" + strings.ToLower(name)
	}
	return key
}

// newSource returns the source of the key at path. Extractors of the application come first.
func (l *Limiter) newSource(name, path string, errs *problems) source {
	s := source{name: name}
	extractor := l.extractors[canonical(name)]
	kind, part, _ := strings.Cut(name, ":")
	switch {
	case extractor != nil:
		s.value = func(c *call) string { return extractor(c.r) }
	case name == "ip:address":
		s.address, s.value = true, (*call).clientText
	case kind == "header" && strings.EqualFold(part, "host"):
		// net/http moves Host from the header to Request.Host.
		s.value = func(c *call) string { return c.r.Host }
	case kind == "header" && part != "":
		part = http.CanonicalHeaderKey(part)
		s.value = func(c *call) string {
			if values := c.r.Header[part]; len(values) > 0 {
				return values[0]
			}
			return ""
		}
	case kind == "query" && part != "":
		s.value = func(c *call) string {
			v, _ := queryValue(c.r.URL.RawQuery, part)
			return v
		}
	case kind == "jwt" && part != "":
		s.value = func(c *call) string { return claimText(c.claim(part)) }
	default:
		errs.add(path, "must be ip:address, header:<name>, query:<name>, jwt:<claim> or a key "+
			"that the application adds (got %q)", name)
	}
	return s
}

// maxPart is the length of the longest value that is part of a key as it is. A longer value is
// replaced by its SHA-256.
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
		sum := digest(v)
		return compositekey.AppendDigest(key, sum[:]), true
	}
	return compositekey.Append(key, v), v != ""
}

// digest hashes the bytes of v in place, because v may be a megabyte.
func digest(v string) [sha256.Size]byte {
	return sha256.Sum256(unsafe.Slice(unsafe.StringData(v), len(v)))
}

// KeyPart is one part of the key of a bucket: one of Rule.Keys, and its value in a request.
type KeyPart struct {
	Name string
	// Value is "" if the request lacks the key. For ip:address it is the address, or the
	// network if it shares one bucket, or "unknown" if the peer has no address. A value of
	// more than 128 bytes is replaced by "sha256:" and its hash.
	Value string
}

// keyParts returns the parts of the key that the request has for a rule.
func (c *call) keyParts(r *rule) []KeyPart {
	parts := make([]KeyPart, len(r.sources))
	for i := range r.sources {
		s := &r.sources[i]
		p := KeyPart{Name: s.name}
		if s.address {
			p.Value = string(c.l.address.AppendNetwork(nil, c.network()))
		} else if p.Value = s.value(c); len(p.Value) > maxPart {
			sum := digest(p.Value)
			p.Value = "sha256:" + hex.EncodeToString(sum[:])
		}
		parts[i] = p
	}
	return parts
}

// FormatKey returns a key on one line, for people and logs: name=value for each part, or
// "all requests" if the key has no parts. A value with spaces, quotes or bytes that are not
// printable ASCII is quoted as in Go, so that it cannot be taken for two parts or two lines.
func FormatKey(key []KeyPart) string {
	if len(key) == 0 {
		return "all requests"
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

// queryValue returns the first value of name in a query string, and how many values there are,
// counting up to two. It reads as url.ParseQuery does, but makes no map, and no string unless
// something is escaped.
func queryValue(query, name string) (value string, n int) {
	for query != "" && n < 2 {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		key, v, _ := strings.Cut(pair, "=")
		if strings.Contains(pair, ";") || len(key) > 3*len(name) || !unescape(&key) ||
			key != name || !unescape(&v) {
			continue
		}
		if n++; n == 1 {
			value = v
		}
	}
	return value, n
}

// unescape replaces s by its meaning in a query, and reports whether it is well-formed.
func unescape(s *string) bool {
	if !strings.ContainsAny(*s, "%+") {
		return true
	}
	u, err := url.QueryUnescape(*s)
	*s = u
	return err == nil
}
