package httplimit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/seed-181794aa/ratelimit/httplimit/policy"
	"github.com/seed-181794aa/ratelimit/internal/clientaddr"
	"github.com/seed-181794aa/ratelimit/internal/hostname"
)

// normalizer returns the function that makes one spelling of all spellings of a header field's
// value, or nil if each spelling is a value of its own.
func normalizer(header string) func(string) string {
	switch header {
	case "Host":
		return hostname.Bare
	case "Authorization", "Proxy-Authorization":
		return normalizeCredentials
	case "Content-Type", "Accept":
		return mediaTypes
	}
	return nil
}

// matcher returns the function that reports whether the value of a header field is the one that
// a policy wants, or what it must want if no field has that value.
func matcher(header, want string) (holds func(string) bool, must string) {
	isControl := func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
	switch normalize := normalizer(header); {
	case header == "Host" && policy.CheckHost(want) != "":
		return nil, policy.CheckHost(want)
	case strings.TrimFunc(want, isBlank) != want || strings.ContainsFunc(want, isControl):
		return nil, "must have no control characters and no blanks at its ends, as no field has them"
	case normalize == nil:
		return equal(want)
	case header == "Content-Type" || header == "Accept":
		parameters := strings.Contains(want, ";") // which are compared then
		want = mediaType(want, parameters)
		return func(list string) bool {
			return list == want || slices.ContainsFunc(splitList(list), func(element string) bool {
				return mediaType(element, parameters) == want
			})
		}, ""
	default:
		want = normalize(want)
		return func(v string) bool { return normalize(v) == want }, ""
	}
}

// normalizeCredentials writes the scheme in lower case, single spaces between words, the
// credentials of Basic as the one base64 text of their bytes, and of Bearer and Token only the
// token.
func normalizeCredentials(v string) string {
	words := strings.FieldsFunc(v, isBlank)
	if len(words) == 0 {
		return ""
	}
	if w := words[0]; len(words) == 1 && len(w) > 7 && strings.EqualFold(w[:6], "bearer") {
		words = []string{"bearer", w[7:]} // chi skips any byte behind Bearer
	}
	switch words[0] = strings.ToLower(words[0]); {
	case words[0] == "basic": // servers skip what is not base64, and a last character alone
		text := notBase64.ReplaceAllString(strings.Join(words[1:], ""), "")
		plain, _ := base64.RawStdEncoding.DecodeString(text)
		words = []string{"basic", base64.StdEncoding.EncodeToString(plain)}
	case len(words) > 1 && (words[0] == "bearer" || words[0] == "token"): // they skip what follows
		token, _, _ := strings.Cut(strings.ReplaceAll(words[1], ";", ","), ",")
		words = []string{words[0], token}
	}
	return strings.Join(words, " ")
}

// areUnclear reports whether servers read credentials differently. Laravel takes the last Bearer.
// Some end those of Basic at a =, and some read - and _ as + and /, which others skip.
func areUnclear(v string) bool {
	v = strings.ToLower(v)
	return strings.LastIndex(v, "bearer ") > 0 || len(v) > 5 && v[:5] == "basic" &&
		isBlank(rune(v[5])) && strings.ContainsAny(strings.TrimRight(v, "="), "=-_")
}

func isBlank(r rune) bool { return r == ' ' || r == '\t' }

// isSpace also fits \xa0, which is a space for servers that take each byte for a character.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r == unicode.ReplacementChar }

// mediaTypes returns the media types of a list in lower case and without parameters, with a comma
// between them.
func mediaTypes(list string) string {
	var types []string
	for _, element := range splitList(list) {
		if t := mediaType(element, false); t != "" {
			types = append(types, t)
		}
	}
	return strings.Join(types, ",")
}

// mediaType returns a media type in lower case, without parameters or with all in one order.
func mediaType(element string, parameters bool) string {
	if !parameters {
		element, _, _ = strings.Cut(element, ";")
	} else if t, all, err := mime.ParseMediaType(element); err == nil {
		element = mime.FormatMediaType(t, all)
	}
	return strings.ToLower(strings.TrimFunc(element, isBlank))
}

// splitList returns the elements of a list with commas. A comma in a quoted string separates
// nothing.
func splitList(list string) (elements []string) {
	start, quoted := 0, false
	for i := 0; i < len(list); i++ {
		switch {
		case list[i] == '"':
			quoted = !quoted
		case list[i] == '\\' && quoted:
			i++
		case list[i] == ',' && !quoted:
			elements = append(elements, list[start:i])
			start = i + 1
		}
	}
	return append(elements, list[start:])
}

// queryValue returns the first value of name in a query string, and whether there are more.
func queryValue(query, name string) (value string, repeated bool) {
	n := 0
	for v := range inQuery(query, name) {
		if n++; n == 2 {
			return value, true
		}
		value = v
	}
	if strings.IndexByte(query, ';') >= 0 { // which some servers take for a &
		for range inQuery(strings.ReplaceAll(query, ";", "&"), name) {
			n--
		}
	}
	return value, n < 0 || value != "" && strings.ContainsAny(query, "# ") // where some end it
}

// cookieValue returns the first value of a cookie in the lines of Cookie, and whether it has more.
// Blanks around a name or a value, quotes around a value and escaped bytes of a value make no
// difference, because some servers read through them. Some also take a blank for a semicolon.
func cookieValue(lines []string, name string) (value string, repeated bool) {
	text := strings.Join(lines, ";")
	isEnd := func(r rune) bool { return r == ';' || isSpace(r) }
	count := func() (n int) {
		for word := range strings.FieldsFuncSeq(text, isEnd) {
			if key, _, _ := strings.Cut(word, "="); key == name {
				n++
			}
		}
		return n
	}
	for pair := range strings.SplitSeq(text, ";") {
		key, v, _ := strings.Cut(pair, "=")
		if strings.TrimFunc(key, isSpace) != name {
			continue
		}
		value = strings.Trim(strings.TrimFunc(v, isSpace), `"`)
		if strings.ContainsAny(value, `%\`) {
			value = escapedByte.ReplaceAllStringFunc(value, unescapeByte)
		}
		return value, strings.Count(text, name) > 1 && count() > 1 // Count takes less time
	}
	return "", strings.Contains(text, name) && count() > 0
}

// escapedByte matches an escaped byte of a cookie: %3A or, as Python reads it, \072 or \:.
var escapedByte = regexp.MustCompile(`%[[:xdigit:]]{2}|\\[0-3][0-7]{2}|\\.`)
var notBase64 = regexp.MustCompile(`[^A-Za-z0-9+/]`)

func unescapeByte(escaped string) string {
	base := map[byte]int{'%': 16, '\\': 8}[escaped[0]]
	if b, err := strconv.ParseUint(escaped[1:], base, 8); err == nil && len(escaped) > 2 {
		return string([]byte{byte(b)})
	}
	return escaped[1:]
}

// inQuery yields the values of name in a query string. It reads as url.ParseQuery does, but makes
// no map, and no string unless something is escaped.
func inQuery(query, name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for rest := query; rest != ""; {
			var pair string
			pair, rest, _ = strings.Cut(rest, "&")
			key, v, _ := strings.Cut(pair, "=")
			if strings.Contains(pair, ";") || len(key) > 3*len(name) || !unescape(&key) ||
				key != name || !unescape(&v) {
				continue
			}
			if !yield(v) {
				return
			}
		}
	}
}

// unescape replaces s by its meaning in a query, and reports whether it is well-formed.
func unescape(s *string) bool {
	u, err := url.QueryUnescape(*s)
	*s = u
	return err == nil
}

type claimsKey struct{}

// ContextWithClaims returns a context with the claims of the request's token, for rules with
// jwt: keys. It is for the handler that checks the signature of the token. That handler must run
// before Middleware. A claim can be used if it is a string, a number or a boolean.
func ContextWithClaims(ctx context.Context, claims map[string]any) context.Context {
	return context.WithValue(ctx, claimsKey{}, claims)
}

// unverifiedClaims decodes the claims of the token in the values of Authorization. It does not
// check the signature. Many servers read the token behind any scheme, or beside other words.
func unverifiedClaims(values []string) (claims map[string]any, ambiguous bool) {
	words := strings.FieldsFunc(strings.Join(values, " "), func(r rune) bool {
		return isSpace(r) || strings.ContainsRune(`,;="`, r) // as in Bearer token="…"
	})
	tokens := slices.DeleteFunc(words, func(word string) bool {
		return strings.Count(word, ".") != 2 || // base64 of {" or of { and a blank, not a host
			!strings.Contains(word, ".ey") && !strings.Contains(word, ".ew")
	})
	ambiguous = len(values) > 1 || len(tokens) > 1
	text := strings.Split(append(tokens, "..")[0], ".")[1] // "" without one; up to 8 KiB
	payload, err := base64.RawURLEncoding.DecodeString(text)
	d := json.NewDecoder(bytes.NewReader(payload))
	d.UseNumber() // a float64 cannot hold an id such as 12345678901234567890
	if err != nil || len(text) > 8<<10 || d.Decode(&claims) != nil {
		return nil, ambiguous
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, ambiguous
	}
	return claims, ambiguous
}

// claimText returns a claim as text, or "" if it is not a string, number or boolean. It uses
// reflection, because an application may have its own types for claims. If such a claim were
// missing, rules would not apply.
func claimText(v any) string {
	switch x := reflect.ValueOf(v); {
	case x.Kind() == reflect.String:
		if n, ok := v.(json.Number); ok {
			return numberText(string(n))
		}
		return x.String()
	case x.Kind() == reflect.Bool:
		return strconv.FormatBool(x.Bool())
	case x.CanInt():
		return strconv.FormatInt(x.Int(), 10)
	case x.CanUint():
		return strconv.FormatUint(x.Uint(), 10)
	case x.CanFloat():
		return numberText(strconv.FormatFloat(x.Float(), 'f', -1, x.Type().Bits()))
	}
	return ""
}

// numberText returns one text for the spellings of a number in JSON: 1000 for 1e3 and 1000.0. Only
// whole numbers that are spelled in digits have more digits than a float64.
func numberText(n string) string {
	switch f, err := strconv.ParseFloat(n, 64); {
	case err != nil:
		return n
	case f == 0:
		return "0"
	case strings.ContainsAny(n, ".eE"):
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return n
}

// ClientAddress says how the address of a client behind proxies is found. The zero value trusts
// no proxy: the client is the peer of the connection.
//
// The address is the peer's or, as long as the address found so far is in Trusted, the next entry
// of Header from the right. An entry that is not the address of a host ends the search, so a client
// can neither choose its address nor avoid having one. An IPv6 address that has an IPv4 address in
// it (mapped, NAT64 or 6to4) counts as the IPv4 address.
type ClientAddress struct {
	// Trusted are the networks of the proxies whose Header is believed. A peer without an
	// address, as on a Unix socket, is in no network: all its clients count as one. A program that
	// connects to a Unix socket can bind its own socket to a path such as 10.0.0.1:1, which reads as
	// an address. Use Find if such programs are not trusted.
	Trusted []netip.Prefix
	// Header is the one header in which trusted proxies append the address of their peer to
	// a list with commas. The default is X-Forwarded-For. In Forwarded (RFC 7239) the entries are
	// the values of for=, and an element without an address, such as for=_hidden, ends the search.
	Header string
	// Find returns the address of the client, or the zero Addr if it is not known. It is for servers
	// that find the address themselves, replaces Trusted and Header, and must be safe for concurrent
	// use.
	Find func(*http.Request) netip.Addr
	// IPv4Bits (1 to 32) and IPv6Bits (1 to 128) are the leading bits that addresses of one bucket
	// have in common. 0 means 32 and 64, because a client usually has a whole /64 of IPv6.
	IPv4Bits, IPv6Bits int
}

type addressFinder struct {
	clientaddr.Rules
	header string
	find   func(*http.Request) netip.Addr // may be nil
}

func (c ClientAddress) finder() (f addressFinder, err error) {
	f.find = c.Find
	f.header = http.CanonicalHeaderKey(cmp.Or(c.Header, "X-Forwarded-For"))
	if f.find != nil && (len(c.Trusted) > 0 || c.Header != "") {
		return f, errors.New("client address: Find replaces Trusted and Header")
	}
	if !fieldName.MatchString(f.header) {
		return f, fmt.Errorf("client address: Header is %q, want A-Z a-z 0-9 _ -", c.Header)
	}
	if f.Rules, err = clientaddr.New(c.Trusted, c.IPv4Bits, c.IPv6Bits); err != nil {
		return f, fmt.Errorf("client address: %w", err)
	}
	return f, nil
}

// ClientAddress returns the address of the client, found as WithClientAddress says. It is the
// zero Addr if the peer has no address, as on a Unix socket.
func (l *Limiter) ClientAddress(r *http.Request) netip.Addr {
	f := &l.address
	if f.find != nil {
		return f.Behind(f.find(r).Unmap().WithZone(""), nil, false)
	}
	peer, _ := clientaddr.Parse(r.RemoteAddr)
	var lines []string
	if f.Trusts(peer) { // otherwise without a look at the header
		lines = l.header(r, f.header)
	}
	return f.Behind(peer, lines, f.header == "Forwarded")
}

// TrustsPeer reports whether the peer of the connection is a trusted proxy. If it is not, its
// X-Forwarded fields must not be passed on to an upstream.
func (l *Limiter) TrustsPeer(r *http.Request) bool {
	peer, _ := clientaddr.Parse(r.RemoteAddr)
	return l.address.Trusts(peer)
}
