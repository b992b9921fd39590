package accesslog

import (
	"bytes"
	"errors"
	"slices"
)

// parser parses the lines of one format.
type parser interface {
	// parse fills an empty record from a line and returns the format of the line. For a line that
	// is not a request, it returns an error that is or wraps a *lack, or errDirective. The error
	// is errNoTime if nothing else is missing.
	parse(line []byte, rec *Record) (Format, error)
}

// namedParser is a parser and the name of what it parses.
type namedParser struct {
	parser
	name string
}

// detector finds the format of a log, and parses its lines.
type detector struct {
	parsers   []namedParser
	envelopes []envelope
	time      timeParser
	extra     int    // the number of extra fields
	tried     string // the names of the formats

	chosen   parser   // the parser of most of the first lines; nil before a valid line
	envelope envelope // of these lines, perhaps none
	format   Format   // of the first of them
	nearest  string   // before it, the name of the format nearest to the line
}

// wantFormat are the formats that are detected.
const wantFormat = "Common or Combined Log Format, JSON lines, logfmt, W3C extended (IIS," +
	" CloudFront), Zeek, HAProxy, AWS ALB, ELB or S3, Envoy or Istio, nginx-proxy-manager, APISIX," +
	" Squid, uWSGI or Gin, each perhaps in the lines of syslog, Docker, Kubernetes, journald or Loki"

// newDetector returns a detector of the formats that a log may have. If two formats can read a
// line, the first one counts.
func newDetector(s Schema) (detector, error) {
	d := detector{envelopes: newEnvelopes(), extra: len(s.Extra), tried: wantFormat}
	if s.LogFormat != "" {
		p, err := newFormatParser(s)
		d.parsers = []namedParser{{p, "the given format"}}
		d.tried = "lines of the given format"
		return d, err
	}
	d.parsers = []namedParser{
		{&clfParser{forwarded: s.Forwarded}, "Common Log Format"},
		{newJSONParser(s), "JSON lines"},
		{&haproxyParser{}, "HAProxy"},
		{&albParser{}, "AWS ALB or ELB"},
		{&envoyParser{forwarded: s.Forwarded}, "Envoy or Istio"},
		{newW3CParser(s), "W3C extended"},
		{&uwsgiParser{}, "uWSGI"},
		{&squidParser{}, "Squid"},
		{&ginParser{}, "Gin"},
	}
	known, err := newKnownParsers(s)
	d.parsers = append(append(d.parsers, known...), namedParser{newLogfmtParser(s), "logfmt"})
	return d, err
}

var errNoEnvelope = &lack{0, "want the prefix or the JSON object of the first valid line"}

// parse parses a line in the format of the log.
func (d *detector) parse(line []byte, rec *Record) error {
	if d.chosen == nil {
		return d.detect(line, rec)
	}
	message, time, ok := d.envelope.cut(line)
	if !ok {
		return errNoEnvelope
	}
	rec.reset(d.extra)
	_, err := d.chosen.parse(message, rec)
	return d.addTime(err, time, rec)
}

// addTime gives the time of an envelope to a line that has none. It returns the error that remains.
func (d *detector) addTime(err error, time []byte, rec *Record) error {
	if err == nil || len(time) == 0 || !errors.Is(err, errNoTime) {
		return err
	}
	var ok bool
	if rec.Time, ok = d.time.any(time); !ok {
		return err
	}
	return nil
}

// voters is how many lines at the beginning of a log choose its format.
const voters = 100

// vote chooses the format and the envelope that detect finds in most of the first lines of a block,
// the earlier one of two. It chooses none if no line is valid.
func (d *detector) vote(block []byte) {
	var ballots []ballot
	var rec Record
	n := 0
	for line := range bytes.Lines(block) {
		line, isWhole := bytes.CutSuffix(line, []byte{'\n'})
		if !isWhole || n == voters {
			break
		}
		line = bytes.TrimLeft(bytes.TrimSuffix(line, []byte{'\r'}), "\x00")
		n++
		d.chosen = nil
		if isBlank(line) || d.detect(line, &rec) != nil {
			continue
		}
		same := func(b ballot) bool { return b.parser == d.chosen && b.name == d.envelope.name }
		i := slices.IndexFunc(ballots, same)
		if i < 0 {
			i = len(ballots)
			ballots = append(ballots, ballot{d.chosen, d.envelope, d.format, 0})
		}
		ballots[i].lines++
	}
	d.chosen, d.envelope, d.format = nil, envelope{}, Undetected
	most := 0
	for _, b := range ballots {
		if b.lines > most {
			most, d.chosen, d.envelope, d.format = b.lines, b.parser, b.envelope, b.format
		}
	}
}

// ballot has the lines for a format in an envelope.
type ballot struct {
	parser
	envelope
	format Format
	lines  int
}

// detect tries all formats on a line in all envelopes, and chooses the first one that reads it. The
// error comes from the nearest format. A line with a prefix of syslog or CRI is only read without
// it: to Common Log Format, the prefix is a client and a user. If the client is not an address, the
// line may have another prefix, before a client that is one. If a format that names its fields has
// no client, the fields of the envelope may have one.
func (d *detector) detect(line []byte, rec *Record) (nearest error) {
	most := -1
	for _, e := range d.envelopes {
		message, time, ok := e.cut(line)
		if !ok {
			continue
		}
		for _, p := range d.parsers {
			rec.reset(d.extra)
			format, err := p.parse(message, rec)
			err = d.addTime(err, time, rec)
			switch {
			case err == nil:
				certain := len(rec.Peer) == 0 || hasAddress(rec.Peer)
				if format.NamesFields() {
					certain = len(rec.Peer) > 0 || d.chosen == nil && !e.hasFields
				}
				if certain || d.chosen == nil && !e.isPrefix {
					d.chosen, d.envelope, d.format = p.parser, e, format
				}
				if certain {
					return nil
				}
			case errors.Is(err, errDirective):
				return err
			}
			if n := partsOf(err); d.chosen == nil && !e.isPrefix && n > most {
				most, nearest, d.nearest = n, err, p.name
			}
		}
		if e.certain {
			break
		}
	}
	if d.chosen != nil {
		return d.parse(line, rec)
	}
	return nearest
}

// partsOf returns how many parts of a request a parser read before an error.
func partsOf(err error) int {
	var l *lack
	if errors.As(err, &l) {
		return l.parts
	}
	return 0
}
