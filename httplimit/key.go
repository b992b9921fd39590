package httplimit

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/seed-181794aa/ratelimit/httplimit/policy"
	"github.com/seed-181794aa/ratelimit/internal/clientaddr"
	"github.com/seed-181794aa/ratelimit/internal/compositekey"
)

type source struct {
	name string // as in the policy
	// networks make the part of ip:address that has one bucket. They are nil for other keys.
	networks *clientaddr.Rules
	// value returns the key's value in c's request, or "" if the request lacks the key. It reports
	// repeated if there are several values, because programs differ in which one they take.
	value func(c *call) (v string, repeated bool)
	// normalize returns one spelling of a value, and may be nil.
	normalize func(value string) string
	// matcher returns the function that reports whether a value is the wanted one, or what want must
	// be if no value is.
	matcher func(want string) (holds func(value string) bool, must string)
}

// once is value for a key that a request cannot have several times.
func once(value func(*call) string) func(*call) (string, bool) {
	return func(c *call) (string, bool) { return value(c), false }
}

// newSource returns the source of the key at path. Extractors of the application come first.
func (b *compilation) newSource(name string, path policy.Path) source {
	s := source{name: name, matcher: equal}
	extractor := b.l.extractors[policy.CanonicalKey(name)]
	var err error
	if extractor == nil && b.l.findExtractor != nil {
		extractor, err = b.l.findExtractor(name)
	}
	kind, part, _ := strings.Cut(name, ":")
	switch {
	case err != nil:
		b.errs.Add(path, "%v", err)
	case extractor != nil:
		s.value = once(func(c *call) string { return extractor(c.r) })
	case policy.IsAddressKey(name): // newRules has those of one with prefixes
		s.networks, s.matcher = &b.l.address.Rules, addressMatcher
		s.value = once(func(c *call) string {
			if a := c.client(); a.IsValid() {
				return a.String()
			}
			return ""
		})
	case kind == "header" && part != "":
		part = http.CanonicalHeaderKey(part)
		s.value, s.normalize = headerValue(part), normalizer(part)
		s.matcher = func(want string) (func(string) bool, string) { return matcher(part, want) }
		if part != "Host" && isNeverThere(kind, part) {
			b.errs.Add(path, "is never there, because net/http removes the field (got %q)", name)
		}
	case kind == "query" && part != "":
		s.value = func(c *call) (string, bool) { return queryValue(c.r.URL.RawQuery, part) }
	case kind == "cookie" && part != "":
		s.value = func(c *call) (string, bool) { return cookieValue(c.l.header(c.r, "Cookie"), part) }
	case kind == "jwt" && part != "":
		if b.l.claims == nil && !b.policy.UnverifiedJWT {
			b.errs.Add(path, `needs claims, which only "jwt": "unverified" supplies here (got %q)`, name)
		}
		s.value = func(c *call) (string, bool) {
			text := claimText(c.claim(part))
			return text, c.ambiguousClaims
		}
		s.matcher = func(want string) (func(string) bool, string) {
			number := numberText(want)
			return func(v string) bool { return v == want || v == number }, ""
		}
	case policy.IsOtherKey(name): // the policy has an error otherwise
		b.errs.Add(path, "must be ip:address, header:<name>, query:<name>, cookie:<name>, jwt:<claim> "+
			"or a key that the application adds (got %q)", name)
	}
	return s
}

func equal(want string) (holds func(string) bool, must string) {
	return func(v string) bool { return v == want }, ""
}

func headerValue(name string) func(*call) (string, bool) {
	if name == "Host" { // net/http moves Host from the header to Request.Host
		return once(func(c *call) string { return c.r.Host })
	}
	isCredentials := name == "Authorization" || name == "Proxy-Authorization"
	return func(c *call) (string, bool) {
		values := c.l.header(c.r, name)
		if name == "Accept" || len(values) == 0 { // all programs read Accept as one list
			return strings.Join(values, ","), false
		}
		v := strings.TrimFunc(values[0], isBlank) // HTTP/2 has blanks, too
		return v, len(values) > 1 || isCredentials && areUnclear(v)
	}
}

// keyValue is value with one spelling for all spellings of a header field's value.
func (s *source) keyValue(c *call) (string, bool) {
	v, repeated := s.value(c)
	if s.normalize != nil {
		v = cmp.Or(s.normalize(v), v)
	}
	return v, repeated
}

// maxPart is the length of the longest value that is part of a key as it is. A longer value is
// replaced by its SHA-256.
const maxPart = 128

// appendPart appends the part of a key that s is, as text if an operator has to find the key in a
// store. A part without a value is empty. It reports what keeps a rule from having the key.
func (s *source) appendPart(key []byte, c *call, asText bool) ([]byte, fault) {
	if s.networks != nil { // never missing: an unknown address is a value, too
		return s.appendAddress(key, s.networks.Network(c.client()), asText), noFault
	}
	v, repeated := s.keyValue(c)
	switch {
	case repeated:
		return key, isRepeated
	case v == "":
		return appendValue(key, v, asText), isMissing
	}
	return appendValue(key, v, asText), noFault
}

func (s *source) appendAddress(key []byte, network netip.Addr, asText bool) []byte {
	if asText {
		return s.networks.AppendNetwork(key, network)
	}
	var array [16]byte
	bytes, _ := network.AppendBinary(array[:0]) // which returns no error
	return compositekey.Append(key, bytes)
}

func appendValue(key []byte, v string, asText bool) []byte {
	switch {
	case len(v) > maxPart:
		sum := digest(v)
		return appendDigest(key, sum[:], asText)
	case asText:
		return compositekey.AppendText(key, v)
	}
	return compositekey.Append(key, v)
}

func appendDigest(key, sum []byte, asText bool) []byte {
	if asText {
		return compositekey.AppendTextDigest(key, sum)
	}
	return compositekey.AppendDigest(key, sum)
}

// fault is why a request does not have a part of a key.
type fault uint8

const (
	noFault fault = iota
	isMissing
	isRepeated
	isUnclear // the path: see ResolvePath
)

// digest hashes the bytes of v in place, because v may be a megabyte.
func digest(v string) [sha256.Size]byte {
	return sha256.Sum256(unsafe.Slice(unsafe.StringData(v), len(v)))
}

// KeyPart is one part of the key of a bucket: one of Rule.Keys, and its value in a request.
type KeyPart struct {
	Name string
	// Value is "" if the request lacks the key. For ip:address it is the address, or the
	// network if it shares one bucket, or "unknown" if the peer has no address. A value of
	// more than 128 bytes is replaced by "sha256:" and its hash. Hosts, credentials and media
	// types are in the spelling in which they are compared.
	Value string
}

func (c *call) keyParts(r *rule) []KeyPart {
	parts := make([]KeyPart, len(r.sources))
	for i := range r.sources {
		s := &r.sources[i]
		p := KeyPart{Name: s.name}
		if s.networks != nil {
			p.Value = string(s.networks.AppendNetwork(nil, s.networks.Network(c.client())))
		} else if p.Value, _ = s.keyValue(c); len(p.Value) > maxPart {
			sum := digest(p.Value)
			p.Value = "sha256:" + hex.EncodeToString(sum[:])
		}
		parts[i] = p
	}
	return parts
}

// FormatKey returns a key on one line, for people and logs: name=value for each part, or
// "all requests" if the key has no parts. A name or a value with spaces, quotes or bytes that are
// not printable ASCII, and a name with =, is quoted as in Go, so that it cannot be taken for two
// parts or two lines. ParseKey reads the line.
func FormatKey(key []KeyPart) string {
	if len(key) == 0 {
		return allRequests
	}
	var text []byte
	for i, p := range key {
		if i > 0 {
			text = append(text, ' ')
		}
		text = append(appendWord(text, p.Name, "="), '=')
		text = appendWord(text, p.Value, "")
	}
	return string(text)
}

const allRequests = "all requests"

// appendWord appends a text, in quotes if it has one of these characters or another that needs it.
func appendWord(b []byte, text, quoted string) []byte {
	if strings.ContainsFunc(text, needsQuotes) || strings.ContainsAny(text, quoted) {
		return strconv.AppendQuote(b, text)
	}
	return append(b, text...)
}

func needsQuotes(r rune) bool { return r <= ' ' || r > '~' || r == '"' }

// pair matches a part of a key as FormatKey writes it, and the parts behind it.
var pair = regexp.MustCompile(`^([^"=]+|"(?:[^"\\]|\\.)+")=([^" ]*|"(?:[^"\\]|\\.)*")(?: (.+))?$`)

// ParseKey returns the parts of a key that FormatKey has written, and reports whether the text is
// one.
func ParseKey(text string) (key []KeyPart, ok bool) {
	if text == allRequests {
		return nil, true
	}
	for more := true; more; more = text != "" {
		m := pair.FindStringSubmatch(text)
		if m == nil {
			return nil, false
		}
		for i, word := range m[1:3] {
			if strings.HasPrefix(word, `"`) {
				m[1+i], _ = strconv.Unquote(word)
			}
		}
		key, text = append(key, KeyPart{m[1], m[2]}), m[3]
	}
	return key, true
}

// FormatMaskedKey is FormatKey with a short hash in place of each value that is not an address,
// because it may be a secret.
func FormatMaskedKey(key []KeyPart) string {
	masked := slices.Clone(key)
	for i, p := range masked {
		if !policy.IsAddressKey(p.Name) && p.Value != "" {
			sum := digest(p.Value)
			masked[i].Value = "sha256:" + hex.EncodeToString(sum[:6])
		}
	}
	return FormatKey(masked)
}

const mustBeNetwork = "must be an address or a network of clients, such as 192.0.2.1 or " +
	"2001:db8::/32"

// addressMatcher compares addresses in any spelling with an address or a network.
func addressMatcher(want string) (holds func(string) bool, must string) {
	network, ok := clientaddr.ParseNetwork(want)
	if !ok {
		return nil, mustBeNetwork
	}
	return func(v string) bool {
		a, err := netip.ParseAddr(v)
		return err == nil && network.Contains(a)
	}, ""
}
