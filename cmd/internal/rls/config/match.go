package config

import (
	"strings"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"

	"github.com/seed-181794aa/ratelimit/internal/compositekey"
)

// Entry is a key and a value of a request's descriptor.
type Entry = ratelimit.RateLimitDescriptor_Entry

// node is a descriptor of the configuration. Its maps are for the descriptors below it.
type node struct {
	rule     *Rule // may be nil
	values   map[pair]*node
	patterns map[string][]pattern // by key, in their order
	keys     map[string]*node     // for any value
}

type pair struct{ key, value string }

// pattern matches the values that have parts in this order, the first at the start and the last at
// the end.
type pattern struct {
	parts []string
	node  *node
}

// add adds a node for a key and a value, which may be "" or a pattern.
func (n *node) add(key, value string) *node {
	next := &node{}
	switch {
	case value == "":
		if n.keys == nil {
			n.keys = map[string]*node{}
		}
		n.keys[key] = next
	case strings.Contains(value, "*"):
		if n.patterns == nil {
			n.patterns = map[string][]pattern{}
		}
		n.patterns[key] = append(n.patterns[key], pattern{strings.Split(value, "*"), next})
	default:
		if n.values == nil {
			n.values = map[pair]*node{}
		}
		n.values[pair{key, value}] = next
	}
	return next
}

// next returns the node of a key and a value, or nil: the value itself before patterns, and
// patterns before any value.
func (n *node) next(key, value string) *node {
	if next := n.values[pair{key, value}]; next != nil {
		return next
	}
	for _, p := range n.patterns[key] {
		if p.matches(value) {
			return p.node
		}
	}
	return n.keys[key]
}

func (p *pattern) matches(value string) bool {
	first, last := p.parts[0], p.parts[len(p.parts)-1]
	if len(value) < len(first)+len(last) ||
		!strings.HasPrefix(value, first) || !strings.HasSuffix(value, last) {
		return false
	}
	rest := value[len(first) : len(value)-len(last)]
	for _, part := range p.parts[1 : len(p.parts)-1] {
		at := strings.Index(rest, part)
		if at < 0 {
			return false
		}
		rest = rest[at+len(part):]
	}
	return true
}

// Match returns the rule of a descriptor, or nil. The rule has as many levels as the descriptor has
// entries.
func (d *Domain) Match(entries []*Entry) *Rule {
	n := &d.root
	for _, e := range entries {
		if n = n.next(e.GetKey(), e.GetValue()); n == nil {
			return nil
		}
	}
	return n.rule
}

// Key returns the key of the bucket of a descriptor that the rule matches: the values that the rule
// leaves open, as text that an operator can type, with commas between them. Two descriptors have
// the same key only if they have the same values there. buffer is for a key that is not a value.
func (r *Rule) Key(entries []*Entry, buffer []byte) (key string, grown []byte) {
	if len(r.open) == 1 {
		v := entries[r.open[0]].GetValue()
		if len(v) <= maxPart && compositekey.IsPlain(v) {
			return v, buffer
		}
	}
	buffer = buffer[:0]
	for n, i := range r.open {
		if n > 0 {
			buffer = append(buffer, compositekey.Separator)
		}
		buffer = appendPart(buffer, entries[i].GetValue())
	}
	return string(buffer), buffer
}

// AppendPath appends the path in metrics of a descriptor that the rule matches.
func (r *Rule) AppendPath(path []byte, entries []*Entry) []byte {
	for i := range r.levels {
		l := &r.levels[i]
		value := l.text
		if l.shown {
			value = entries[i].GetValue()
		}
		path = appendStep(path, l.key, value)
	}
	return path
}

func appendStep(path []byte, key, value string) []byte {
	if len(path) > 0 {
		path = append(path, '.')
	}
	path = append(path, key...)
	if value != "" {
		path = append(append(path, '_'), value...)
	}
	return path
}

// EntriesKey returns a key of all keys and values of a descriptor: key=value, with commas between
// the entries.
func EntriesKey(entries []*Entry, buffer []byte) (key string, grown []byte) {
	buffer = buffer[:0]
	for i, e := range entries {
		if i > 0 {
			buffer = append(buffer, compositekey.Separator)
		}
		buffer = append(appendPart(buffer, e.GetKey()), '=')
		buffer = appendPart(buffer, e.GetValue())
	}
	return string(buffer), buffer
}

func appendPart(key []byte, part string) []byte {
	if len(part) > maxPart {
		return compositekey.AppendTextDigest(key, digest(part))
	}
	return compositekey.AppendText(key, part)
}
