package accesslog

import (
	"fmt"
	"slices"
	"strings"
)

// Schema says in which fields a JSON log keeps what a Record holds. A field of a
// nested object is named by its path, "request.headers.X-Api-Key"; of an array, the
// first element counts.
type Schema struct {
	// Names maps "time", "ip", "user", "host", "uri" and "size" to a field. What is
	// not mapped is looked for in the fields that Caddy and nginx are known to use.
	Names map[string]string
	// Extra are fields to be read into Record.Fields.
	Extra []string
}

// The fields of a Record, in the order of defaultNames. Extra ones follow behind.
const (
	fieldTime = iota
	fieldIP
	fieldUser
	fieldHost
	fieldURI
	fieldSize
	numFields
)

// defaultNames lists where the fields are looked for: the first one present counts.
// Caddy's client_ip comes before its remote_ip, which behind a trusted proxy is the
// proxy's. "request" is a whole request line in nginx, an object in Caddy.
var defaultNames = [numFields]struct {
	field string
	names []string
}{
	{"time", []string{"ts", "time", "timestamp", "@timestamp", "time_iso8601", "msec",
		"time_local"}},
	{"ip", []string{"request.client_ip", "request.remote_ip", "request.remote_addr",
		"client_ip", "remote_ip", "remote_addr", "ip"}},
	{"user", []string{"user_id", "remote_user", "user"}},
	{"host", []string{"request.host", "host", "http_host", "server_name"}},
	{"uri", []string{"request.uri", "request_uri", "uri", "request", "path"}},
	{"size", []string{"size", "body_bytes_sent", "bytes_sent", "bytes"}},
}

// Validate returns an error if Names maps something that a Record does not hold, or
// to nothing.
func (s Schema) Validate() error {
	var known []string
	for _, d := range defaultNames {
		known = append(known, d.field)
	}
	for field, name := range s.Names {
		if !slices.Contains(known, field) || name == "" {
			return fmt.Errorf("field mapping %s=%s: want NAME=FIELD with NAME one of %s",
				field, name, strings.Join(known, ", "))
		}
	}
	return nil
}

// candidates returns the paths to look for each field in, best first, and after
// those of the Record the extra ones.
func (s Schema) candidates() [][]string {
	var all [][]string
	for _, d := range defaultNames {
		if name, ok := s.Names[d.field]; ok {
			all = append(all, []string{name})
		} else {
			all = append(all, d.names)
		}
	}
	for _, name := range s.Extra {
		all = append(all, []string{name})
	}
	return all
}

// node is a place in the tree of all paths that are looked for. A path may end where
// others go on: "request" is a text in one log and an object in another.
type node struct {
	slots    []int // the values that are found here
	children []child
}

// child is a node and the name of the member that leads to it. There are so few of them
// in a node that searching a list is faster than a map.
type child struct {
	name string
	node *node
}

// child returns the node below n of that name, or nil if nothing is looked for there.
func (n *node) child(name []byte) *node {
	for i := range n.children {
		if string(name) == n.children[i].name {
			return n.children[i].node
		}
	}
	return nil
}

// add enters a path whose value goes to slot.
func (n *node) add(path string, slot int) {
	for name := range strings.SplitSeq(path, ".") {
		next := n.child([]byte(name))
		if next == nil {
			next = &node{}
			n.children = append(n.children, child{name, next})
		}
		n = next
	}
	n.slots = append(n.slots, slot)
}
