package accesslog

import (
	"fmt"
	"slices"
	"strings"
)

// Schema names the fields of a JSON log that hold the parts of a Record. A path names a field
// in a nested object: "request.headers.X-Api-Key". The first element of an array counts, but
// an array of addresses is a list.
type Schema struct {
	// Names maps "time", "ip" (the peer), "forwarded", "user", "host", "uri" and "size" to
	// a field. The default fields are those of Caddy and nginx.
	Names map[string]string
	// Extra are the fields for Record.Fields.
	Extra []string
	// Forwarded asks for Record.Forwarded, in all formats.
	Forwarded bool
}

// The fields of a Record, in the order of defaultNames. The extra fields follow them.
const (
	fieldTime = iota
	fieldPeer
	fieldForwarded
	fieldUser
	fieldHost
	fieldURI
	fieldSize
	numFields
)

// defaultNames lists the candidates for each field: the first one present counts. The names
// of a peer come before Caddy's client_ip, which Caddy may have found in a header, and before
// the names of X-Forwarded-For, which serve a log without a peer. "request" is a whole
// request line in nginx and an object in Caddy.
var defaultNames = [numFields]struct {
	field string
	names []string
}{
	{"time", []string{"ts", "time", "timestamp", "@timestamp", "time_iso8601", "msec",
		"time_local"}},
	{"ip", []string{"request.remote_ip", "request.remote_addr", "remote_ip", "remote_addr",
		"request.client_ip", "client_ip", "ip", "http_x_forwarded_for", "x_forwarded_for"}},
	{"forwarded", []string{"request.headers.X-Forwarded-For", "http_x_forwarded_for",
		"x_forwarded_for"}},
	{"user", []string{"user_id", "remote_user", "user"}},
	{"host", []string{"request.host", "host", "http_host", "server_name"}},
	{"uri", []string{"request.uri", "request_uri", "uri", "request", "path"}},
	{"size", []string{"size", "body_bytes_sent", "bytes_sent", "bytes"}},
}

// Validate returns an error if Names has an unknown name or an empty field.
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

// candidates returns the candidate paths of each field, the best one first. The extra fields
// follow the fields of a Record.
func (s Schema) candidates() [][]string {
	var all [][]string
	for field, d := range defaultNames {
		if name, ok := s.Names[d.field]; ok {
			d.names = []string{name}
		}
		if field == fieldForwarded && !s.Forwarded {
			d.names = nil
		}
		all = append(all, d.names)
	}
	for _, name := range s.Extra {
		all = append(all, []string{name})
	}
	return all
}

// node is a node in the tree of all candidate paths. A path may end where another goes on:
// "request" is a text in one log and an object in another.
type node struct {
	slots    []int // the slots of the values here
	whole    bool  // whether an array is a value, and not its first element
	children []child
}

// child is a node and the name of the member that leads to it. A node has so few children
// that searching a list is faster than a map.
type child struct {
	name string
	node *node
}

// child returns the child of n with that name, or nil if no path leads there.
func (n *node) child(name []byte) *node {
	for i := range n.children {
		if string(name) == n.children[i].name {
			return n.children[i].node
		}
	}
	return nil
}

// add adds a path whose value goes to slot.
func (n *node) add(path string, slot int, whole bool) {
	for name := range strings.SplitSeq(path, ".") {
		next := n.child([]byte(name))
		if next == nil {
			next = &node{}
			n.children = append(n.children, child{name, next})
		}
		n = next
	}
	n.slots = append(n.slots, slot)
	n.whole = n.whole || whole
}
