package accesslog

import (
	"bytes"
	"errors"
	"fmt"
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
	parsers []namedParser
	extra   int    // the number of extra fields
	tried   string // the names of the formats

	chosen reading // has no parser before a valid line
}

// reading is a way to read lines.
type reading struct {
	namedParser
	envelope
	format Format // of the first line
}

// wantFormat are the formats that are detected.
const wantFormat = "Common or Combined Log Format, JSON lines, logfmt, W3C extended (IIS," +
	" CloudFront), HAProxy, AWS ALB, ELB or S3, Envoy, Istio or APISIX, each perhaps in the lines" +
	" of syslog, Docker or Kubernetes; --format reads others"

// newDetector returns a detector of the formats that a log may have.
func newDetector(s Schema) (detector, error) {
	d := detector{extra: len(s.Extra), tried: wantFormat}
	if s.LogFormat != "" {
		p, err := newFormatParser(s.LogFormat, s, formatCandidates)
		d.parsers = []namedParser{{p, "the given format"}}
		d.tried = "lines of the given format"
		return d, err
	}
	d.parsers = slices.Concat([]namedParser{
		{&clfParser{}, "Common Log Format"},
		{&jsonParser{fields: newFields(s, jsonCandidates)}, "JSON lines"},
		{newW3CParser(s), "W3C extended"},
	}, newPatternParsers(s.Extra), []namedParser{{&logfmtParser{newFields(s, jsonCandidates)}, "logfmt"}})
	return d, nil
}

var errNoEnvelope = &lack{0, "want the prefix or the JSON object that the first lines are in"}

// parse parses a line in the format of the log. If choose chose none, the first valid line does, by
// the first format that reads it.
func (d *detector) parse(line []byte, rec *Record) error {
	if d.chosen.parser == nil {
		err := d.try(line, rec, func(r reading) {
			if d.chosen.parser == nil {
				d.chosen = r
			}
		})
		if d.chosen.parser == nil {
			return err
		}
	}
	message, time, ok := d.chosen.cut(line)
	if !ok {
		return errNoEnvelope
	}
	_, err := d.read(d.chosen.parser, message, time, rec)
	return err
}

// read parses a message with a parser. If the message has no time, it has the one of its envelope.
func (d *detector) read(p parser, message, time []byte, rec *Record) (format Format, err error) {
	rec.reset(d.extra)
	format, err = p.parse(message, rec)
	if len(time) > 0 && errors.Is(err, errNoTime) {
		if ns, ok := parseTime(time, isoLayouts...); ok {
			rec.Time, err = ns, nil
		}
	}
	return format, err
}

// try calls found for each way to read a line. The error says what the line lacks in the nearest
// format, or is errDirective.
func (d *detector) try(line []byte, rec *Record, found func(reading)) (nearest error) {
	most := -1
	for _, e := range envelopesOf(line) {
		message, time, ok := e.cut(line)
		if !ok {
			continue
		}
		for _, p := range d.parsers {
			format, err := d.read(p.parser, message, time, rec)
			var l *lack
			switch {
			case err == nil:
				found(reading{p, e, format})
			case errors.Is(err, errDirective):
				return err
			case errors.As(err, &l) && l.parts > most:
				most, nearest = l.parts, fmt.Errorf("nearest is %s: %w", p.name, err)
			}
		}
	}
	return nearest
}

// voters is how many lines at the beginning of a log choose its format.
const voters = 100

// choose chooses the reading of most of the first lines of a block. It chooses none if no line is
// valid. It is an error if two read as many lines and find other requests in them.
func (d *detector) choose(block []byte) error {
	type ballot struct {
		reading
		lines    int
		requests []byte
	}
	var ballots []ballot
	var rec Record
	n := 0
	for line := range bytes.Lines(block) {
		line, isWhole := bytes.CutSuffix(line, []byte{'\n'})
		if n++; !isWhole || n > voters {
			break
		}
		if line = trimLine(line); isBlank(line) {
			continue
		}
		_ = d.try(line, &rec, func(r reading) {
			same := func(b ballot) bool { return b.parser == r.parser && b.envelope.name == r.envelope.name }
			i := slices.IndexFunc(ballots, same)
			if i < 0 {
				i = len(ballots)
				ballots = append(ballots, ballot{reading: r})
			}
			ballots[i].lines++
			ballots[i].requests = fmt.Appendf(ballots[i].requests, "%d %q %q\n", rec.Time, rec.Peer,
				rec.Path)
		})
	}
	var best ballot
	for _, b := range ballots {
		if b.lines > best.lines {
			best = b
		}
	}
	for _, b := range ballots {
		if b.lines == best.lines && !bytes.Equal(b.requests, best.requests) {
			return fmt.Errorf("%s and %s fit its first lines, and find other requests in them:"+
				" want --format with the log_format of nginx that says which one",
				best.namedParser.name, b.namedParser.name)
		}
	}
	d.chosen = best.reading
	return nil
}
