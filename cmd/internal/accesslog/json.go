package accesslog

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"unsafe"

	"github.com/tidwall/gjson"
)

// jsonParser parses JSON lines. One pass over a line collects the values of all paths of the
// schema.
type jsonParser struct {
	fields
	path []byte // to the object that is read
	hint string // how to name the fields of the first object that lacks some
	weak bool   // whether the object of the hint is a message: another one takes its place
}

// Caddy and its module of this project write messages about requests, with their method and path,
// and about files and requests of their own to loggers whose names begin so. The logger of another
// program may be http.access or http.server.
var messageLoggers = []string{"http.log", "http.handlers.", "http.reverse_proxy.", "token_bucket",
	"http.matchers.", "http.acme_client", "tls.", "pki.", "admin.api"}

var (
	errObject = &lack{0, "want one JSON object a line"}
	errJSON   = &lack{5, "want one JSON object a line"}
)

func (p *jsonParser) parse(line []byte, rec *Record) error {
	if line = bytes.TrimSpace(line); len(line) == 0 || line[0] != '{' {
		return errObject
	}
	if !gjson.ValidBytes(line) {
		if line = mend(line); !gjson.ValidBytes(line) {
			return errJSON
		}
	}
	// The library reads a string. The line does not change while the string is in use.
	object := gjson.Parse(unsafe.String(unsafe.SliceData(line), len(line)))
	clear(p.values)
	p.path = p.path[:0]
	p.collect(line, object)
	logger := p.text(fieldLogger)
	isIn := func(begin string) bool { return bytes.HasPrefix(logger, []byte(begin)) }
	if !isIn("http.log.access") && slices.ContainsFunc(messageLoggers, isIn) {
		return ErrMessage
	}
	err := p.fillRequest(rec)
	isMessage := errors.Is(err, ErrMessage)
	if (err != nil || len(rec.Peer) == 0) && (p.hint == "" || p.weak && !isMessage) {
		p.weak = isMessage
		p.hint = "an object has " + object.Get("@keys").Raw +
			": --field ip=NAME, time=NAME or uri=NAME says which one to use"
	}
	return err
}

// emptyVariable is what nginx writes for an empty variable that is not in quotes.
var emptyVariable = regexp.MustCompile(`":\s*-?\s*([,}])`)

// mend returns a line of a log_format of nginx in JSON: without escape=json it has \x22 in texts,
// and outside of texts it has nothing, or a dash, for an empty variable.
func mend(line []byte) []byte {
	line = bytes.ReplaceAll(line, []byte(`\x`), []byte(`\\x`))
	return emptyVariable.ReplaceAll(line, []byte(`":null$1`))
}

// collect sets the values of the paths that lead into an object. A name may be a path itself: some
// write {"source.ip": …} for {"source": {"ip": …}}. Of a name that occurs twice, the last member
// counts, and of a null the next candidate. An array stands for its first element, as in Caddy, for
// a list of addresses, or with [*] behind its path, as no header field is named, for all texts.
func (p *jsonParser) collect(line []byte, object gjson.Result) {
	before := len(p.path)
	object.ForEach(func(name, value gjson.Result) bool {
		p.path = append(p.path[:before], name.Str...)
		slots, known := p.slots[string(p.path)]
		switch {
		case !known || value.Type == gjson.Null:
		case value.IsObject():
			p.path = append(p.path, '.')
			p.collect(line, value)
		case len(slots) == 0:
		case !value.IsArray():
			p.set(slots, jsonText(line, value))
		default:
			if slots[0] >= p.first[fieldPeer] && slots[0] < p.first[fieldUser] {
				p.set(slots, joinTexts(value, ','))
			} else if first := value.Get("0"); first.Type != gjson.JSON {
				p.set(slots, jsonText(line, first))
			}
			if all := p.slots[string(append(p.path, "[*]"...))]; len(all) > 0 {
				p.set(all, joinTexts(value, '\n'))
			}
		}
		return true
	})
}

// jsonText returns the text of a value that is not an object or an array. It is a part of the line
// unless it has an escape, which is rare.
func jsonText(line []byte, value gjson.Result) []byte {
	raw := line[value.Index : value.Index+len(value.Raw)]
	switch {
	case value.Type != gjson.String:
		return raw
	case bytes.IndexByte(raw, '\\') >= 0:
		return []byte(value.Str)
	}
	return raw[1 : len(raw)-1]
}

// joinTexts joins the texts of an array. With commas, they are the joined lines of a header field.
func joinTexts(array gjson.Result, separator byte) []byte {
	var list []byte
	array.ForEach(func(_, value gjson.Result) bool {
		if value.Type == gjson.String {
			list = append(append(list, value.Str...), separator)
		}
		return true
	})
	return bytes.TrimSuffix(list, []byte{separator})
}
