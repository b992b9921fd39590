package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// openAI finds the tokens of requests and answers in the form of OpenAI. A client that wants a
// stream has to ask for its usage, with stream_options.include_usage. Otherwise the estimate
// stands.
var openAI = httplimit.Usage{Estimate: maxTokens, Read: newReader}

// mostBody is how many bytes of a request are read for its estimate.
const mostBody = 1 << 20

// maxTokens returns the most tokens that a request asks for, or 0 if it does not say them.
func maxTokens(r *http.Request) float64 {
	if r.Body == nil {
		return 0
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, mostBody))
	rest := io.MultiReader(bytes.NewReader(body), r.Body) // has the error again, if there is one
	r.Body = struct {
		io.Reader
		io.Closer
	}{rest, r.Body}
	var asked struct {
		Tokens float64 `json:"max_tokens"`
	}
	if err != nil || json.Unmarshal(body, &asked) != nil {
		return 0
	}
	return asked.Tokens
}

// mostTail is how many bytes of an answer are kept at least. The usage is at its end.
const mostTail = 1 << 16

// usageReader keeps the end of an answer, which is a document of JSON or a stream of events.
type usageReader struct{ tail []byte }

func newReader(_ *http.Request, h http.Header) httplimit.UsageReader {
	if h.Get("Content-Encoding") != "" {
		return nil
	}
	return new(usageReader)
}

func (a *usageReader) Write(b []byte) (int, error) {
	a.tail = append(a.tail, b...)
	if n := len(a.tail) - mostTail; n > mostTail { // rarely, because it copies
		a.tail = append(a.tail[:0], a.tail[n:]...)
	}
	return len(b), nil
}

// Usage reads the last usage. Within a text of the model, the quotes of the name are escaped.
func (a *usageReader) Usage() (tokens float64, ok bool) {
	const name = `"usage":`
	var usage struct {
		Tokens *float64 `json:"total_tokens"`
	}
	i := bytes.LastIndex(a.tail, []byte(name))
	if i < 0 {
		return 0, false
	}
	d := json.NewDecoder(bytes.NewReader(a.tail[i+len(name):]))
	if d.Decode(&usage) != nil || usage.Tokens == nil {
		return 0, false
	}
	return *usage.Tokens, true
}
