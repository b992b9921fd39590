package accesslog

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
)

// formatParser parses the lines of a log_format of nginx
// (https://nginx.org/en/docs/http/ngx_http_log_module.html#log_format), such as
//
//	$remote_addr [$time_iso8601] "$request" $status $body_bytes_sent
//
// A variable ends where the text after it in the format begins. In quotes, a backslash escapes the
// next byte. A space stands for several, because some programs pad their columns. A line may go on
// after the end of the format, so a variable there ends with its word, its time, its list or its
// request. A variable that no field of a Record comes from is passed over. A time without a zone
// counts as UTC.
type formatParser struct {
	fields
	format    Format
	before    []byte // the text before the first variable
	start     *lack  // reports that it is not there
	variables []variable
	ends      bool // whether a line must end where the format ends
	hasPort   bool // whether each peer has a port, which may follow an IPv6 without brackets
	timeless  bool // whether no variable is a time, so that the envelope must have it
}

type variable struct {
	name    string
	slots   []int
	is      func(b []byte) bool // reports whether a value can be one; nil for any value
	padded  bool                // whether spaces before the value do not belong to it
	after   []byte              // the text up to the next variable; empty at the end
	missing *lack               // reports that the value or the text is not there
}

var (
	errFormatClient = &lack{3, "want an address or the name of a host as the client"}
	// errConnection reports a line of a log in which servers also write connections without a request.
	errConnection = fmt.Errorf("%w: the line has only a connection", ErrMessage)
	errTimeless   = &lack{20, "the lines have no time: want one in front of each, such as from" +
		" docker logs -t or kubectl logs --timestamps"}
	// errHostFirst reports a line in which a host is where the client is in other logs.
	errHostFirst = &lack{20, "a host stands first and an address behind the time: want --format with" +
		" the log_format of nginx that says which one is the client"}
)

// newFormatParser returns a parser of lines in a format. In it, \t is a tab, as in nginx.
func newFormatParser(format string, s Schema) (*formatParser, error) {
	p := &formatParser{format: LogFormat}
	text, rest, _ := strings.Cut(strings.ReplaceAll(format, `\t`, "\t"), "$")
	p.before, p.start = []byte(text), &lack{0, fmt.Sprintf("want %q at the start", text)}
	var names []string
	for more := rest != ""; more; {
		padded := strings.HasSuffix(text, " ")
		var name string
		name, rest = cutVariable(rest)
		text, rest, more = strings.Cut(rest, "$")
		if name == "" || more && text == "" {
			return nil, fmt.Errorf("%q: want a name after each $, and text after each variable"+
				" but the last", format)
		}
		names = append(names, cmp.Or(strict[name].of, name))
		p.hasPort = p.hasPort || name == "peer_port"
		p.variables = append(p.variables, variable{
			name: name, is: strict[name].is, padded: padded, after: []byte(text),
			missing: &lack{len(p.variables), fmt.Sprintf("want $%s before %q", name, text)},
		})
	}
	p.fields = newFields(s, names)
	p.oldest = 0
	for i, name := range names {
		p.variables[i].slots = p.slots[name]
		p.set(p.slots[name], []byte(name))
	}
	p.timeless = p.text(fieldTime) == nil
	return p, nil
}

// check returns an error if no variable of the format is a time or a client.
func (p *formatParser) check(format string) error {
	if p.timeless {
		return fmt.Errorf("%q has no time: want $time_local, $time_iso8601 or $msec", format)
	}
	if p.text(fieldPeer) == nil {
		return fmt.Errorf("%q has no client: want $remote_addr or $http_x_forwarded_for", format)
	}
	return nil
}

// cutVariable cuts off the name that s begins with, which may be in braces.
func cutVariable(s string) (name, rest string) {
	if inBraces, ok := strings.CutPrefix(s, "{"); ok {
		name, rest, _ = strings.Cut(inBraces, "}")
		return name, rest
	}
	rest = strings.TrimLeft(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
	return s[:len(s)-len(rest)], rest
}

func (p *formatParser) parse(line []byte, rec *Record) error {
	rest, ok := bytes.CutPrefix(line, p.before)
	if !ok {
		return p.start
	}
	for i := range p.variables {
		v := &p.variables[i]
		if v.padded {
			rest = bytes.TrimLeft(rest, " ")
		}
		end := v.end(rest)
		if end < 0 || v.is != nil && !v.is(bytes.TrimRight(rest[:end], " ")) {
			return v.missing
		}
		p.set(v.slots, bytes.TrimRight(rest[:end], " "))
		rest = rest[end+len(v.after):]
	}
	if p.ends && len(rest) > 0 {
		return &lack{len(p.variables), fmt.Sprintf("want the end before %q", rest)}
	}
	if err := p.fill(rec); err != nil && !p.timeless {
		return err
	}
	if p.hasPort {
		rec.Peer = withoutPort(rec.Peer)
	}
	switch uri := bytes.TrimRight(p.text(fieldURI), " "); {
	case string(uri) == "- - -", string(uri) == "<BADREQ>", // of HAProxy
		string(uri) == "error:transaction-end-before-headers": // of Squid
		return errConnection
	case !isClient(rec.Peer):
		return errFormatClient
	case p.format == Combined && isAddr(rec.Host) && !isAddr(rec.Peer) && !isList(rec.Peer):
		return errHostFirst
	case p.timeless:
		return errTimeless
	}
	return nil
}

// end returns where the value ends that b begins with, or -1.
func (v *variable) end(b []byte) int {
	switch {
	case len(v.after) > 0:
		return unescaped(b, v.after)
	case v.name == "request":
		if end := bytes.IndexByte(b, '"'); end >= 0 {
			return end
		}
		return len(b)
	case v.name == "time_local":
		return min(len(b), len(clfLayout))
	}
	list, _ := cutList(b)
	return len(list)
}
