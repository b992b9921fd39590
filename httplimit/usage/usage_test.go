package usage

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The bodies have the forms in which the servers answer.
var bodies = []struct {
	name, body string
	want       Tokens
}{
	{"chat completion", read("chat-completion.json"), Tokens{1306, 205, 1280, 1511}},
	{"chat completion as a stream", read("chat-completion.events"), Tokens{18, 9, 0, 27}},
	{"chat completion as a stream, with the usage so far in each event",
		"data: {\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":1,\"total_tokens\":6}}\r\n\r\n" +
			"data: {\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2,\"total_tokens\":7}}\r\n\r\n",
		Tokens{5, 2, 0, 7}},
	{"response", read("response.json"), Tokens{328, 52, 256, 380}},
	{"response as a stream", read("response.events"), Tokens{37, 11, 0, 48}},
	{"embeddings", read("embeddings.json"), Tokens{8, 0, 0, 8}},
	{"message", read("message.json"), Tokens{4143, 503, 1800, 4646}},
	{"message as a stream", read("message.events"), Tokens{125, 15, 100, 140}},
	{"message as a stream, with all of the usage at the end",
		`data: {"type":"message_start","message":{"usage":{"input_tokens":25,"output_tokens":1}}}

data: {"usage":{"input_tokens":0,"cache_read_input_tokens":0,"output_tokens":15}}

`, Tokens{25, 15, 0, 40}},
	{"message beside the usage",
		`{"message":{"usage":{"input_tokens":5}},"usage":{"output_tokens":2}}`, Tokens{5, 2, 0, 7}},
	{"total of more than its parts",
		`{"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":40}}`, Tokens{10, 5, 0, 40}},
	{"both forms in one", `{"usage":{"prompt_tokens":110,"completion_tokens":5,"total_tokens":115,
"prompt_tokens_details":{"cached_tokens":90},"cache_read_input_tokens":90,
"cache_creation_input_tokens":10}}`, Tokens{110, 5, 90, 115}},
	{"an event in two lines of data",
		"data: {\"usage\": {\"prompt_tokens\": 3,\ndata:  \"completion_tokens\": 4\ndata: }}\n\n",
		Tokens{3, 4, 0, 7}},
	{"an event after a broken one",
		"data: {\"a\": {\"b\": \"\n\n: a comment {\"\nid: {\n" +
			"data: {\"usage\": {\"total_tokens\": 4}}\n\n",
		Tokens{Total: 4}},
	{"after a byte order mark", "\ufeff{\"usage\":{\"total_tokens\":12}}", Tokens{Total: 12}},
	{"a text that ends with a quote", `{"a":"\"","usage":{"total_tokens":4}}`, Tokens{Total: 4}},
	{"a usage after a broken one",
		"data: {\"usage\": {\"total_tokens\": 9,\n\n" +
			"data: {\"usage\": {\"prompt_tokens\": 1}}\n\n", Tokens{Input: 1, Total: 1}},
	{"too many brackets", `{}}]{"usage":{"total_tokens":4}}`, Tokens{Total: 4}},
	{"a deep text", `{"a":{"b":{"c":{"d":{"e":{"f":{"g":[[1]]}}}}}},"usage":{"total_tokens":4}}`,
		Tokens{Total: 4}},
	{"free", `{"usage":{"total_tokens":0}}`, Tokens{}},
}

func read(file string) string {
	body, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		panic(err)
	}
	return string(body)
}

// pieces returns what a Body reads of the body in pieces of n bytes.
func pieces(body string, n int) (t Tokens, ok bool) {
	b := new(Body)
	for len(body) > 0 {
		piece := body[:min(n, len(body))]
		body = body[len(piece):]
		if got, err := b.Write([]byte(piece)); got != len(piece) || err != nil {
			return Tokens{Total: -1}, false
		}
	}
	return b.Tokens()
}

func TestBodies(t *testing.T) {
	for _, tt := range bodies {
		for n := 1; n <= len(tt.body); n++ {
			if got, ok := pieces(tt.body, n); got != tt.want || !ok {
				t.Fatalf("%s, in pieces of %d: %v %t, want %v", tt.name, n, got, ok, tt.want)
			}
		}
	}
}

// A body that ends early has what its last whole usage said, and at no byte something else.
func TestBodiesThatEndEarly(t *testing.T) {
	for _, tt := range bodies {
		steps := []Tokens{tt.want}
		if strings.HasSuffix(tt.name, "with the usage so far in each event") {
			steps = []Tokens{{5, 1, 0, 6}, tt.want}
		}
		for n := range len(tt.body) {
			got, ok := pieces(tt.body[:n], 7)
			for len(steps) > 0 && ok && got != steps[0] {
				steps = steps[1:]
			}
			if ok && len(steps) == 0 || !ok && got != (Tokens{}) {
				t.Fatalf("%s, after %q: %v %t", tt.name, tt.body[:n], got, ok)
			}
		}
		if len(steps) != 1 {
			t.Errorf("%s: %v was not seen", tt.name, steps)
		}
	}
}

func TestBodiesWithoutUsage(t *testing.T) {
	for _, body := range []string{
		"", "\n\n", "data: [DONE]\n\n", `{"error": {"message": "no", "usage": {"total_tokens": 3}}}`,
		`{"usage": null}`, `{"usage": {}}`, `{"usage": [{"total_tokens": 3}]}`,
		`{"usage": "total_tokens", "a": 3}`, `{"usage": {"total_tokens": "3"}}`,
		`{"usage": {"total_tokens": [3]}}`, `{"usage": {"total_tokens": -3}}`,
		`{"usage": {"total_tokens": 1e308}}`, `{"usage": {"total_tokens": 1.5}}`,
		`{"usage": {"total_tokens": 99999999999999999999}}`,
		`{"usage": {"total_tokens": 3`, `{"usage": {"u\u0073age": {"total_tokens": 3}}}`,
		`{"choices": [{"usage": {"total_tokens": 3}}]}`, `[{"usage": {"total_tokens": 3}}]`,
		`{"message": {"message": {"usage": {"total_tokens": 3}}}}`,
		`{"usage": {"cached_tokens": 3}}`,
		`{"usage": {"a": {"b": {"c": {"d": {"total_tokens": 3}}}}}}`,
		`{"response": {"usage": {"input_tokens_details": {"a": {"b": {"cached_tokens": 3}}}}}}`,
		`{"a": {"b": {"c": {"d": {"e": {"usage": {"total_tokens": 3}}}}}}}`,
		`{"` + strings.Repeat("x", 100) + `": {"usage": {"total_tokens": 3}}}`,
		`data: {"a": ` + "\n\n" + `event: {"usage": {"total_tokens": 3}}` + "\n\n",
		"<p>busy</p>", `}}]{"`,
	} {
		if got, ok := pieces(body, 3); ok || got != (Tokens{}) {
			t.Errorf("%q: %v %t", body, got, ok)
		}
	}
}

func TestCompressedBodyIsNotRead(t *testing.T) {
	for coding, isRead := range map[string]bool{"": true, "identity": true, "gzip": false} {
		if r := Read(nil, http.Header{"Content-Encoding": {coding}}); (r != nil) != isRead {
			t.Errorf("%q: %v", coding, r)
		}
	}
}

func TestWriteAllocatesNothing(t *testing.T) {
	b := new(Body)
	for _, tt := range bodies {
		body := []byte(tt.body)
		if n := testing.AllocsPerRun(10, func() { _, _ = b.Write(body) }); n > 0 {
			t.Errorf("%s: %v allocations", tt.name, n)
		}
	}
}

func TestEstimate(t *testing.T) {
	long := `{"max_tokens": 5, "text": "` + strings.Repeat("x", 1<<20) + `"}`
	for body, want := range map[string]float64{
		`{"max_tokens": 300}`: 300, `{"max_completion_tokens": 200}`: 200,
		`{"max_output_tokens": 100}`: 100, `{"max_tokens": "x"}`: 0,
		`{"max_tokens": null}`: 0, "no JSON": 0, "": 0, long: 0,
		`{"max_tokens": 300, "max_tokens": 1, "Max_Tokens": 2, "MAX_TOKENS": "x"}`: 300,
		`{"max_tokens": 300, "n": 4}`: 1200, `{"max_tokens": 300, "n": 2, "best_of": 3}`: 900,
		`{"max_tokens": 300, "n": 0, "best_of": null}`: 300, `{"n": 4}`: 0,
		`{"max_tokens": 1e400, "n": 1e308}`: 1 << 106, `{"max_tokens": -5, "n": 1e400}`: 0,
		`{"max_tokens": 300, "n": -2}`: 300,
	} {
		r := httptest.NewRequest(http.MethodPost, "/v1/messages", strings.NewReader(body))
		for range 2 {
			if got := Estimate(r); got != want {
				t.Errorf("%.30s: %v, want %v", body, got, want)
			}
		}
		if all, err := io.ReadAll(r.Body); string(all) != body || err != nil {
			t.Errorf("%.30s: the model gets %d bytes, %v", body, len(all), err)
		}
	}
	none := http.Request{Body: http.NoBody} // net/http sends any other empty body in chunks
	if got := Estimate(&http.Request{}) + Estimate(&none); got != 0 || none.Body != http.NoBody {
		t.Errorf("without a body: %v", got)
	}
}

// However a body is cut, the result is the same, and makes sense.
func FuzzBody(f *testing.F) {
	for _, tt := range bodies {
		f.Add([]byte(tt.body), uint16(1))
		f.Add([]byte(tt.body), uint16(len(tt.body)/2))
	}
	f.Fuzz(func(t *testing.T, body []byte, n uint16) {
		whole, ok := pieces(string(body), len(body))
		cut, alsoOK := pieces(string(body), int(n)+1)
		if whole != cut || ok != alsoOK {
			t.Errorf("whole: %v %t, in pieces: %v %t", whole, ok, cut, alsoOK)
		}
		if !(whole.Cached >= 0 && whole.Output >= 0 && whole.Input+whole.Output <= whole.Total) ||
			whole.Total > 4<<53 || !ok && whole != (Tokens{}) {
			t.Errorf("%+v %t", whole, ok)
		}
	})
}
