// Package usage reads how many tokens a call of a language model has used, in the forms of OpenAI
// (chat completions, responses, embeddings) and of Anthropic (messages). Estimate and Read are the
// functions of an httplimit.Usage:
//
//	httplimit.WithUsage(httplimit.Usage{Estimate: usage.Estimate, Read: usage.Read})
//
// A stream of chat completions has its usage only if the request asks for it, with
// stream_options.include_usage. The usage of a compressed answer is not read, so a proxy must not
// pass Accept-Encoding on.
package usage

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"strconv"
)

// Reader reads the body of one response while it passes by, such as a document of JSON or the
// events of a stream. An error of Write has no effect on the response.
type Reader interface {
	io.Writer
	// Usage returns the tokens of the response when it has ended, or false if the body does not say
	// them, so that the estimate stands.
	Usage() (tokens float64, ok bool)
}

// Read returns a *Body, or nil if the header says that the response is compressed.
func Read(_ *http.Request, h http.Header) Reader {
	if coding := h.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return nil
	}
	return new(Body)
}

// Estimate returns the most tokens that the JSON body of the request lets the answer have:
// max_tokens, max_completion_tokens or max_output_tokens, of which the largest counts, also of
// several of one name, for each of the n or best_of answers. It returns 0 if the body has none of
// the three, or is larger than a mebibyte. It puts a body with the same bytes in place of r.Body.
func Estimate(r *http.Request) float64 {
	const longest = 1 << 20
	if r.Body == nil || r.Body == http.NoBody {
		return 0
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, longest))
	rest := io.MultiReader(bytes.NewReader(body), r.Body) // has the error again, if there is one
	r.Body = struct {
		io.Reader
		io.Closer
	}{rest, r.Body}
	var asked struct {
		Tokens     largest `json:"max_tokens"`
		Completion largest `json:"max_completion_tokens"`
		Output     largest `json:"max_output_tokens"`
		N          largest `json:"n"`
		BestOf     largest `json:"best_of"`
	}
	if err != nil || json.Unmarshal(body, &asked) != nil {
		return 0
	}
	return float64(max(asked.Tokens, asked.Completion, asked.Output) * max(1, asked.N, asked.BestOf))
}

// largest is the largest of the numbers that a field has, 0 to most. Servers differ in which one
// they take, and encoding/json takes MAX_TOKENS for max_tokens.
type largest float64

// UnmarshalJSON implements json.Unmarshaler. It ignores what is not a number.
func (l *largest) UnmarshalJSON(text []byte) error {
	number, _ := strconv.ParseFloat(string(text), 64) // infinite if it is too large for a float64
	*l = max(*l, largest(min(number, most)))
	return nil
}

// most is the largest number of tokens that makes sense.
const most = 1 << 53

// Tokens is what a call has used. A field is 0 if the response does not say it.
type Tokens struct {
	Input  float64 // with what a cache had, or got
	Output float64
	Cached float64 // the part of Input that a cache had
	Total  float64 // Input and Output, or what the response says if that is more
}

// Body reads the body of one response: a JSON document, or a stream of server-sent events. The zero
// Body is ready to use, and only one goroutine at a time may use it. A Body has a fixed size.
//
// It reads the object "usage" of the document or of an event, or of the "response" or "message" in
// it. If there are several, it takes the largest of each number, because an event counts the
// response up to itself. A usage that is cut off does not count, nor the one of a "message" alone,
// which begins a stream: otherwise a client would get past a limit by ending the stream after it.
// So of a stream that ends early it reads what the last event said, which may be less than the
// model has used.
type Body struct {
	first  byte // of the line of a stream, 0 before it; or '{' in a document
	state  state
	depth  int      // of the objects and arrays
	ends   [6]int   // by depth: where the path of the object or array ends
	path   [64]byte // of the present value, or what fits of it: see kindOf
	length int      // of the path
	number float64  // NaN if it is not a count
	begins bool     // the present value is in a "message", or behind it
	open   counts   // of the usage that has begun
	seen   counts   // the largest of each count, of the usages that have ended
}

type state uint8

const (
	between state = iota
	inString
	inEscape
	inNumber
)

const (
	prompt = iota
	input
	output
	total
	cached
	cacheRead
	cacheWritten
	said // 1 if there is another count
	kinds
)

type counts [kinds]float64

// kindOf has the paths of the counts. A path begins anew in a "response" or "message".
var kindOf = map[string]int{
	".usage.prompt_tokens":                       prompt,
	".usage.input_tokens":                        input,
	".usage.completion_tokens":                   output,
	".usage.output_tokens":                       output,
	".usage.total_tokens":                        total,
	".usage.prompt_tokens_details.cached_tokens": cached,
	".usage.input_tokens_details.cached_tokens":  cached,
	".usage.cache_read_input_tokens":             cacheRead,
	".usage.cache_creation_input_tokens":         cacheWritten,
}

// Write reads the next piece, and returns no error.
func (b *Body) Write(p []byte) (int, error) {
	for _, c := range p {
		switch {
		case b.first == 0 && c == '\n': // an event ends, also if its JSON does not
			b.state, b.depth = between, 0
		case b.first != '{' && c == '\n':
			b.first = 0
		case b.first == 0 && c > ' ' && c < 0x80: // not white space or a byte order mark
			b.first = c
		}
		if b.first == '{' || b.first == 'd' { // a d begins only the field data
			b.read(c)
		}
	}
	return len(p), nil
}

// read reads a byte of JSON. It checks no syntax.
func (b *Body) read(c byte) {
	switch b.state {
	case between:
		b.begin(c)
	case inString:
		switch c {
		case '"':
			b.state = between
			return
		case '\\':
			b.state = inEscape // the path is not one of kindOf then
		}
		b.add(c)
	case inEscape:
		b.state = inString
	default:
		switch {
		case c >= '0' && c <= '9':
			b.number = 10*b.number + float64(c-'0')
		case c == '.', c == 'e', c == 'E', c == '+', c == '-':
			b.number = math.NaN()
		default:
			b.take()
			b.state = between
			b.begin(c)
		}
	}
}

// begin reads a byte of JSON that is not in a string or number.
func (b *Body) begin(c byte) {
	switch {
	case c == '"':
		b.state, b.length = inString, b.end()
		b.add('.')
	case c == '{', c == '[':
		isMessage := b.depth == 1 && b.has(".message", b.length)
		if b.depth == 0 || isMessage || b.depth == 1 && b.has(".response", b.length) {
			b.begins, b.length = isMessage, 0
		}
		if c == '[' {
			b.add(c)
		}
		if b.depth++; b.depth < len(b.ends) {
			b.ends[b.depth] = b.length
		}
		if b.isUsage() {
			b.open = counts{}
		}
	case c == '}' && b.isUsage():
		if b.begins && b.depth == 3 {
			b.open[said] = 0
		}
		for i, n := range b.open {
			b.seen[i] = max(b.seen[i], n)
		}
		fallthrough
	case c == '}', c == ']':
		b.length = b.end()
		b.depth = max(b.depth-1, 0)
	case c == '-':
		b.state, b.number = inNumber, math.NaN()
	case c >= '0' && c <= '9':
		b.state, b.number = inNumber, float64(c-'0')
	}
}

func (b *Body) add(c byte) {
	if b.length < len(b.path) {
		b.path[b.length] = c
	}
	b.length++
}

// end returns where the path of the object or array ends. Below the last of ends there is no count.
func (b *Body) end() int { return b.ends[min(b.depth, len(b.ends)-1)] }

func (b *Body) upTo(end int) []byte { return b.path[:min(end, len(b.path))] }

func (b *Body) has(path string, end int) bool { return string(b.upTo(end)) == path }

func (b *Body) isUsage() bool { return b.has(".usage", b.end()) }

// take takes a number that has ended, if it is a count.
func (b *Body) take() {
	if kind, ok := kindOf[string(b.upTo(b.length))]; ok && b.number <= most {
		b.open[kind], b.open[said] = b.number, 1
	}
}

// Tokens returns what the body has said so far, or false if it has said nothing.
func (b *Body) Tokens() (Tokens, bool) {
	n := &b.seen
	if n[said] == 0 {
		return Tokens{}, false
	}
	t := Tokens{ // Anthropic's input is without the tokens of the cache
		Input:  max(n[prompt], n[input]+n[cacheRead]+n[cacheWritten]),
		Output: n[output],
		Cached: max(n[cached], n[cacheRead]),
	}
	t.Total = max(n[total], t.Input+t.Output)
	return t, true
}

// Usage returns the Total of Tokens. For another number, such as Total without Cached, embed a
// *Body in a Reader.
func (b *Body) Usage() (tokens float64, ok bool) {
	t, ok := b.Tokens()
	return t.Total, ok
}
