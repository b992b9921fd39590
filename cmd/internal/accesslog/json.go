package accesslog

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"unsafe"

	"github.com/tidwall/gjson"
)

// jsonParser parses JSON lines. One pass over a line collects the values of all paths of the
// schema.
type jsonParser struct {
	fields
	root node   // the paths
	hint string // how to name the fields of the first object that lacks some
}

// maxNested is how many objects and arrays a line may have: the library calls itself for each that
// is in another one.
const maxNested = 10_000

var (
	errObject = &lack{0, "want one JSON object a line"}
	errJSON   = &lack{5, "want one JSON object a line"}
)

// newJSONParser returns a parser for the fields of a schema.
func newJSONParser(s Schema) *jsonParser {
	p := &jsonParser{fields: newFields(s, jsonCandidates)}
	for slot, path := range p.paths {
		p.root.add(path, slot, slot >= p.first[fieldPeer] && slot < p.first[fieldUser])
	}
	return p
}

func (p *jsonParser) parse(line []byte, rec *Record) (Format, error) {
	if line = bytes.TrimSpace(line); len(line) == 0 || line[0] != '{' {
		return Undetected, errObject
	}
	if len(line) > maxNested &&
		bytes.Count(line, []byte{'{'})+bytes.Count(line, []byte{'['}) > maxNested {
		return Undetected, errJSON
	}
	if !gjson.ValidBytes(line) {
		if line = mend(line); !gjson.ValidBytes(line) {
			return Undetected, errJSON
		}
	}
	// The library reads a string. The line does not change while the string is in use.
	object := gjson.Parse(unsafe.String(unsafe.SliceData(line), len(line)))
	clear(p.values)
	p.collect(line, object, &p.root)
	err := p.fillRequest(rec)
	if (err != nil || len(rec.Peer) == 0) && p.hint == "" {
		p.hint = hintFor(object)
	}
	return JSON, err
}

// emptyVariable is what nginx writes for an empty variable that is not in quotes.
var emptyVariable = regexp.MustCompile(`":\s*-?\s*([,}])`)

// mend returns a line of a log_format of nginx in JSON: without escape=json it has \x22 in texts,
// and outside of texts it has nothing, or a dash, for an empty variable.
func mend(line []byte) []byte {
	line = bytes.ReplaceAll(line, []byte(`\x`), []byte(`\\x`))
	return emptyVariable.ReplaceAll(line, []byte(`":null$1`))
}

// collect sets the values of the paths that lead into an object. If a name occurs twice, the last
// member counts. An array stands for its first element, as in the headers of Caddy, or for a list
// of addresses. A null counts as missing, so that the next candidate counts.
func (p *jsonParser) collect(line []byte, object gjson.Result, n *node) {
	object.ForEach(func(name, value gjson.Result) bool {
		child := n.children[name.Str]
		switch {
		case child == nil || value.Type == gjson.Null:
		case value.IsObject():
			p.collect(line, value, child)
		case !value.IsArray():
			p.set(child.slots, jsonText(line, value))
		case child.isList:
			p.set(child.slots, joinTexts(value))
		default:
			value.ForEach(func(_, first gjson.Result) bool {
				if first.Type != gjson.JSON {
					p.set(child.slots, jsonText(line, first))
				}
				return false
			})
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

// joinTexts joins the texts of an array with commas, as the lines of a header field are joined.
func joinTexts(array gjson.Result) []byte {
	var list []byte
	array.ForEach(func(_, value gjson.Result) bool {
		if value.Type == gjson.String {
			list = append(append(list, value.Str...), ',')
		}
		return true
	})
	return bytes.TrimSuffix(list, []byte{','})
}

// node is a node in the tree of all paths. A path may end where another goes on: "request" is a
// text in one log and an object in another.
type node struct {
	slots    []int // of the values here
	isList   bool  // whether an array is a list, and not its first element
	children map[string]*node
}

// add adds a path whose value goes to slot. The path may also be a name: some programs write
// {"source.ip": …} for {"source": {"ip": …}}.
func (n *node) add(path string, slot int, isList bool) {
	end := n
	for name := range strings.SplitSeq(path, ".") {
		end = end.enter(name)
	}
	for _, leaf := range []*node{end, n.enter(path)} {
		if !slices.Contains(leaf.slots, slot) {
			leaf.slots = append(leaf.slots, slot)
			leaf.isList = leaf.isList || isList
		}
	}
}

// enter returns the child of n with that name, which it makes if there is none.
func (n *node) enter(name string) *node {
	if n.children == nil {
		n.children = make(map[string]*node)
	}
	if n.children[name] == nil {
		n.children[name] = &node{}
	}
	return n.children[name]
}

// maxHint is the most bytes of names in a hint.
const maxHint = 300

// hintFor returns how to name the fields of an object.
func hintFor(object gjson.Result) string {
	names := strings.Join(memberNames("", object), ", ")
	if len(names) > maxHint {
		names = names[:maxHint] + "…"
	}
	return "the object has " + names + ": --field ip=NAME, time=NAME or uri=NAME says which one to use"
}

// memberNames returns the paths to the members of an object, and of the objects in it.
func memberNames(before string, object gjson.Result) (names []string) {
	object.ForEach(func(name, value gjson.Result) bool {
		path := before + name.Str
		if value.IsObject() && len(path) < maxHint {
			names = append(names, memberNames(path+".", value)...)
		} else {
			names = append(names, path)
		}
		return true
	})
	return names
}
